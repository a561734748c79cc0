"""What a command sets for what it runs is known there, and where a push, a container and a database are."""

import pytest

from claudomator_py.acts import Reach
from claudomator_py.acts.pattern import Place
from claudomator_py.acts.tool_calls import exceeding

OWN = '[core]\n\tbare = false\n[remote "origin"]\n\turl = /code/shop/remote.git\n'
FILES = {
    "/code/shop/reset": '#!/bin/sh\npsql "$DATABASE_URL" -c "truncate orders"\n',
    "/code/shop/Makefile": 'reset:\n\tpsql "$(DATABASE_URL)" -f x.sql\npush:\n\tgit push origin "$$BRANCH"\n',
    "/code/shop/package.json": '{"scripts": {"reset": "psql \\"$DATABASE_URL\\" -f reset.sql"}}',
    "/code/shop/kind.yaml": "apiVersion: v1\ncurrent-context: kind-x\n",
    "/code/shop/prod.yaml": "apiVersion: v1\ncurrent-context: prod\n",
    "/code/shop/.git/HEAD": "ref: refs/heads/fix-login\n",
    "/code/own/.git/HEAD": "ref: refs/heads/main\n",
    "/code/own/.git/config": OWN,
    "/code/redirected/.git/HEAD": "ref: refs/heads/main\n",
    "/code/redirected/.git/config": f'{OWN}[url "git@example.org:"]\n\tinsteadOf = /code/\n',
    "/code/pushed/.git/HEAD": "ref: refs/heads/main\n",
    "/code/pushed/.git/config": f"{OWN}\tpushurl = git@example.org:shop.git\n",
    "/code/included/.git/HEAD": "ref: refs/heads/main\n",
    "/code/included/.git/config": f"{OWN}[include]\n\tpath = more\n",
}
LOCAL, FAR = "postgres://localhost/shop_test", "postgres://u@db.example.org/shop"


def is_stopped(command: str, folder: str = "/code/shop") -> bool:
    place = Place(folder, ("/code/shop", folder), "/home/ada", {"PATH": "/usr/bin"}, FILES.get)
    return exceeding("Bash", {"command": command}, Reach.NETWORK, place) is not None


@pytest.mark.parametrize(
    "command",
    [
        "DATABASE_URL={} ./reset",
        "DATABASE_URL={} sh reset",
        "env DATABASE_URL={} ./reset",
        "DATABASE_URL={} make reset",
        "DATABASE_URL={} npm run reset",
        "DATABASE_URL={} bash -c './reset'",
        'reset() { psql "$DATABASE_URL"; }; DATABASE_URL={} reset',
        "DATABASE_URL={} sh -c 'psql \"$DATABASE_URL\"'",
        "docker run --rm -e DATABASE_URL={} shop alembic upgrade head",
        "docker run --rm --env=DATABASE_URL={} shop alembic upgrade head",
        "docker compose run -e DATABASE_URL={} web alembic upgrade head",
        "podman exec --env DATABASE_URL={} web alembic upgrade head",
    ],
)
def test_a_variable_of_a_command_is_known_to_what_it_runs(command: str) -> None:
    assert is_stopped(command.replace("{}", FAR, 1))
    assert not is_stopped(command.replace("{}", LOCAL, 1))


def test_it_is_forgotten_afterwards() -> None:
    assert is_stopped(f"DATABASE_URL={LOCAL} ./reset; ./reset")
    assert not is_stopped(f"export DATABASE_URL={LOCAL}; DATABASE_URL={LOCAL}2 ./reset; ./reset")
    assert is_stopped("f() { git push origin $1; }; f fix; git push origin $1")
    assert is_stopped("BRANCH=main make push")
    assert not is_stopped("BRANCH=fix make push")


@pytest.mark.parametrize(
    ("command", "stopped"),
    [
        ("docker compose exec web psql -h db -U app", False),
        ("docker compose exec -T web sh -c 'mysql -h mysql shop < x.sql'", False),
        ("docker compose run --rm web curl -X POST http://api:8000/x", False),
        ("docker-compose exec web redis-cli -h redis flushall", False),
        ("docker compose exec web psql -h db.example.org", True),
        ("docker compose exec web psql -h $HOST", True),
        ("docker compose exec web ssh prod uptime", True),
        ("docker compose exec web true; psql -h db", True),
        ("psql -h db", True),
        ("kubectl --context kind-x apply -f k8s/ && helm --kube-context minikube install a b", False),
        ("kubectl --context kind-x --server https://k8s.example.org apply -f k8s/", True),
        ("kubectl --context prod apply -f k8s/", True),
        ("kubectl apply -f k8s/", True),
        ("KUBECONFIG=kind.yaml kubectl apply -f k8s/", False),
        ("KUBECONFIG=prod.yaml kubectl apply -f k8s/", True),
        ("aws --endpoint-url http://localhost:4566 s3 rb s3://x", False),
        ("AWS_ENDPOINT_URL=http://localhost:4566 aws s3 rb s3://x", False),
        ("AWS_ENDPOINT_URL=https://s3.example.org aws s3 rb s3://x", True),
        ("VAULT_ADDR=http://127.0.0.1:8200 vault kv put secret/x a=b", False),
        ("vault kv put secret/x a=b", True),
        ("gh api repos/a/b/issues --method GET -f state=open", False),
        ("gh api repos/a/b/issues --method POST -f title=x", True),
    ],
)
def test_services_on_this_machine_are_nobody_elses(command: str, stopped: bool) -> None:
    assert is_stopped(command) is stopped


@pytest.mark.parametrize(
    ("command", "folder", "stopped"),
    [
        ("git push --force origin main", "/code/own", False),
        ("git push", "/code/own", False),
        ("git push --force origin main", "/code/redirected", True),
        ("git push --force origin main", "/code/pushed", True),
        ("git push --force origin main", "/code/included", True),
        ("git push --force other main", "/code/own", True),
        ("git -c remote.origin.pushurl=git@example.org:x push origin main", "/code/own", True),
        ("git config remote.origin.pushurl git@example.org:x && git push origin main", "/code/own", True),
        ("git remote set-url origin git@example.org:x && git push origin main", "/code/own", True),
        ("GIT_CONFIG_COUNT=1 git push origin main", "/code/own", True),
        ('git push origin "v$V"', "/code/shop", True),
        ('git push origin "release-$(cat VERSION)"', "/code/shop", True),
        ('git push origin "fix-$ISSUE"', "/code/shop", False),
        ("git push --force /tmp/out.git main", "/code/shop", False),
        ("git push --force /srv/git/out.git main", "/code/shop", True),
        ("git clone /tmp/a.git b && cd b && git push --force origin main", "/code/shop", False),
        ("git clone https://example.org/a.git b && cd b && git push --force origin main", "/code/shop", True),
        ("git remote add out /tmp/out.git && git push --mirror out", "/code/shop", False),
        ("git remote add out /tmp/out.git && git push --mirror origin", "/code/shop", True),
    ],
)
def test_a_push_into_the_runs_own_folders_reaches_nobody(command: str, folder: str, stopped: bool) -> None:
    assert is_stopped(command, folder) is stopped


@pytest.mark.parametrize(
    ("command", "stopped"),
    [
        ("gh pr create --help", False),
        ("kubectl delete --help", False),
        ("terraform apply -help", False),
        ("knife --version", False),
        ("ssh prod purge --help", True),
        ("kubectl exec web --help", True),
        ("npm publish ./help", True),
        ("git push origin main --title --help", True),
        ("shutdown -h", True),
    ],
)
def test_asking_for_help_is_no_act(command: str, stopped: bool) -> None:
    assert is_stopped(command) is stopped


@pytest.mark.parametrize(
    ("command", "stopped"),
    [
        ("k6 run load.js", False),
        ("k delete ns x", True),
        ("python3.12 -c 'import smtplib'", True),
        ("usql sqlite3://x.db", False),
        ("atlas schema apply -u sqlite://dev.db", False),
        (f"atlas schema apply -u {FAR}", True),
        ("hurl --test x.hurl --variable host=http://localhost:3000", False),
        ("hurl --test x.hurl https://api.example.org", True),
        ("ruby -rstripe -e 'Stripe::Refund.create(charge: 1)'", True),
        ("node -r @sendgrid/mail -e 'mail.send(x)'", True),
        ("ruby -rjson -e 'JSON.generate({}).create(1)'", False),
        ("rsync -a dist/ web1:/srv --exclude .git", True),
        ("aws s3 cp build s3://site --recursive --acl public-read", True),
        ("aws s3 cp s3://site/x.csv data/ --quiet", False),
        ("systemctl --user status x", False),
        ("systemctl --user restart x", True),
    ],
)
def test_where_it_acts_is_what_counts(command: str, stopped: bool) -> None:
    assert is_stopped(command) is stopped
