"""What a store says of its embedder decides nothing about the network: the user does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("httpcore")
pytest.importorskip("stamina")

from cvx.embed import Embedder
from cvx.embed.protocol import close
from cvx.embed.registry import embedder_from, embedder_of, remembered_embedder
from cvx.errors import EmbedderNotApprovedError, InvalidInputError
from tests.embed_server import OLLAMA, OPENAI, Server, running

pytestmark = pytest.mark.requirement("B16")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration, which is not there yet."""
    monkeypatch.setenv("CVX_CONFIG", str(tmp_path / "mine.toml"))
    return tmp_path / "mine.toml"


@pytest.fixture
def server() -> Iterator[Server]:
    with running(Server(endpoints=OPENAI | OLLAMA)) as started:
        yield started


def test_a_path_without_a_model_is_named_as_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"missing/model'.*no such folder.*config\.json"):
        embedder_from(str(tmp_path / "missing/model"))
    with pytest.raises(InvalidInputError, match=r"'minilm': give .*path of a model's folder"):
        embedder_from("minilm")


def key_sent(embedder: Embedder, server: Server) -> str | None:
    embedder.embed(["a mug"])
    close(embedder)
    return server.headers[-1].get("Authorization")


def test_a_store_that_names_a_server_reaches_nobody(mine: Path, server: Server) -> None:
    for spec in (f"ollama:toy@{server.url}", f"openai:toy@{server.url}/v1", "ollama:toy", "odd:x"):
        with pytest.raises(EmbedderNotApprovedError) as raised:
            remembered_embedder(spec, dim=8)
        assert f"--embedder {spec}" in str(raised.value)
        assert f'embedders = ["{spec}"] in {mine}' in str(raised.value)
    assert server.requests == []
    assert remembered_embedder("lexical:64").info()["dim"] == 64


def test_what_the_user_approved_is_asked_and_nothing_like_it(mine: Path, server: Server) -> None:
    spec = f"openai:toy@{server.url}/v1"
    mine.write_text(f'embedders = ["{spec}"]')
    assert key_sent(remembered_embedder(spec, dim=8), server) is None
    for other in (f"{spec}/", f"openai:toy@{server.url}", f"ollama:toy@{server.url}/v1"):
        with pytest.raises(EmbedderNotApprovedError):
            remembered_embedder(other, dim=8)


def test_a_key_of_the_environment_goes_where_the_user_sends_it(
    mine: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = f"openai:toy@{server.url}/v1"
    monkeypatch.setenv("CVX_EMBEDDER_KEY", "s3cret")
    assert key_sent(embedder_from(spec, dim=8), server) == "Bearer s3cret"
    mine.write_text(f'embedders = ["{spec}"]')
    # Approved, and yet a store's line gets no key that is not bound to that origin.
    assert key_sent(remembered_embedder(spec, dim=8), server) is None
    monkeypatch.setenv("MY_KEY", "another")
    bound = f'embedders = ["{spec}"]\n[keys]\n"{server.url}" = "MY_KEY"\n'
    mine.write_text(bound)
    assert key_sent(remembered_embedder(spec, dim=8), server) == "Bearer another"
    assert key_sent(embedder_from(spec, dim=8), server) == "Bearer another"
    mine.write_text('[keys]\n"https://models.example" = "CVX_EMBEDDER_KEY"\n')
    assert key_sent(embedder_from(spec, dim=8), server) is None


def test_the_configuration_lies_with_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CVX_CONFIG", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(EmbedderNotApprovedError, match=f"{tmp_path}/.config/cvx/config.toml"):
        remembered_embedder("ollama:toy")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    with pytest.raises(EmbedderNotApprovedError, match=f"{tmp_path}/xdg/cvx/config.toml"):
        remembered_embedder("ollama:toy")
    (tmp_path / "xdg" / "cvx").mkdir(parents=True)
    (tmp_path / "xdg" / "cvx" / "config.toml").write_text('embedders = ["ollama:toy"]')
    close(remembered_embedder("ollama:toy", dim=8))


@pytest.mark.parametrize(
    "said", ["embedders = ", 'embedders = "ollama:toy"', "[keys]\na = 1", 'embeddrs = ["x"]']
)
def test_a_configuration_that_says_something_else_is_refused(mine: Path, said: str) -> None:
    mine.write_text(said)
    with pytest.raises(InvalidInputError, match=str(mine)):
        remembered_embedder("ollama:toy")


@pytest.mark.parametrize("spec", ["openai:x@https://me:s3cret@host/v1", "odd:x@//s3cret@h"])
def test_a_password_in_a_line_is_never_shown(
    mine: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for make in (embedder_from, remembered_embedder):
        with pytest.raises((EmbedderNotApprovedError, InvalidInputError)) as raised:
            make(spec)
        assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("number", ["9" * 5000, "1e999", "-1", "\N{SUPERSCRIPT TWO}", "1" * 10])
def test_a_line_of_odd_numbers_is_a_typed_error(number: str) -> None:
    with pytest.raises(InvalidInputError):
        embedder_from(f"lexical:{number}")
    assert embedder_of(f"cvx-lexical-1/{number}/3-5/1") is None
    assert embedder_of("cvx-lexical-1/64/3-5/-+-") is None
