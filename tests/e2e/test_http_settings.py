"""What the configuration says of HTTP is what the daemon does."""

import httpx

from tests.e2e.site import Site


def test_the_daemon_answers_under_the_names_that_are_allowed_and_no_other(site: Site) -> None:
    site.configure(http={"listen": "127.0.0.1:0", "allowed_hosts": ["Box.example", "proxy.example:8443"]})
    site.start().ready()
    answers = {}
    with httpx.Client(base_url=str(site.endpoint), trust_env=False) as http:
        for host in ("box.example", "proxy.example:8443", "proxy.example", "evil.example", "box.example.evil.example"):
            answers[host] = http.get("/livez", headers={"Host": host}).status_code
    assert list(answers.values()) == [200, 200, 421, 421, 421]


def test_a_host_that_cannot_be_meant_keeps_the_daemon_from_starting(site: Site) -> None:
    site.configure(http={"allowed_hosts": ["0.0.0.0"]})
    assert site.start().wait() == 1
    assert "http.allowed_hosts[0]: `0.0.0.0` stands for every host" in site.log_text()
