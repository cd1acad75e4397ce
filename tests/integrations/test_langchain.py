"""A LangChain vector store over a memory passes LangChain's own tests of such stores."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests

from cvx.errors import InvalidInputError, SettingsMismatchError
from cvx.integrations.langchain import EmbeddingsEmbedder, MemoryVectorStore
from cvx.memory import Memory

TEXTS = ["The spare key is under the green pot.", "Ann moved to Oslo.", "The violin is sold."]


class TestStandard(VectorStoreIntegrationTests):
    """What LangChain asks of every vector store."""

    @pytest.fixture
    def vectorstore(self) -> Iterator[VectorStore]:
        with Memory(embedder=EmbeddingsEmbedder(self.get_embeddings())) as memory:
            yield MemoryVectorStore(memory)


def test_a_retriever_finds_by_words_and_by_metadata() -> None:
    store = MemoryVectorStore(Memory(embedder="lexical"))
    store.add_texts(TEXTS, [{"topic": "home"}, {"topic": "home", "year": 2024}, {"topic": "sale"}])
    retriever = store.as_retriever(search_kwargs={"k": 1})
    assert retriever.invoke("where is the key?")[0].page_content == TEXTS[0]
    assert asyncio.run(retriever.ainvoke("is the violin here?"))[0].page_content == TEXTS[2]
    found = store.similarity_search("the violin", k=3, filter={"topic": "home"})
    assert sorted(one.page_content for one in found) == TEXTS[:2][::-1]
    late = store.similarity_search("the key", filter={"year": {"gte": 2020}})
    assert [one.metadata for one in late] == [{"topic": "home", "year": 2024}]


def test_scores_fall_and_relevance_is_a_chance() -> None:
    store = MemoryVectorStore(Memory(embedder="lexical"))
    store.add_texts(TEXTS)
    scores = [score for _, score in store.similarity_search_with_score("the green pot", k=3)]
    assert scores == sorted(scores, reverse=True)
    (best, chance), *_, (_, last) = store.similarity_search_with_relevance_scores("the green pot")
    assert best.page_content == TEXTS[0]
    assert 0.0 <= last < chance <= 1.0


def test_embeddings_are_kept_with_the_folder_they_made(tmp_path: Path) -> None:
    made = DeterministicFakeEmbedding(size=8)
    store = MemoryVectorStore.from_texts(TEXTS, made, ids=["a", "b", "c"], path=str(tmp_path / "m"))
    vector = made.embed_query(TEXTS[1])
    assert [one.id for one in store.similarity_search_by_vector(vector, k=1)] == ["b"]
    store.memory.close()
    with Memory.open(tmp_path / "m", embedder=EmbeddingsEmbedder(made)) as memory:
        again = MemoryVectorStore(memory)
        assert again.get_by_ids(["c", "x"]) == [Document(id="c", page_content=TEXTS[2])]
        assert float(np.asarray(memory.get(key="b").vector) @ vector) > 0.999 * np.linalg.norm(
            vector
        )
    with pytest.raises(SettingsMismatchError):
        Memory.open(tmp_path / "m", embedder=EmbeddingsEmbedder(made, "another"))


def test_what_is_replaced_loses_its_old_metadata_and_what_is_forgotten_comes_back() -> None:
    store = MemoryVectorStore(Memory(embedder="lexical"))
    store.add_texts(["one"], [{"a": 1, "b": 2}], ids=["k"])
    store.add_texts(["two"], [{"b": 3}], ids=["k"])
    assert store.get_by_ids(["k"]) == [Document(id="k", page_content="two", metadata={"b": 3})]
    assert store.delete()
    assert store.get_by_ids(["k"]) == store.similarity_search("two") == []
    store.add_texts(["two"], ids=["k"])
    assert [one.id for one in store.similarity_search("two")] == ["k"]


def test_what_does_not_fit_is_refused_whole() -> None:
    store = MemoryVectorStore(Memory(embedder="lexical"))
    with pytest.raises(InvalidInputError, match="metadatas has 1 for 2 texts"):
        store.add_texts(["a", "b"], [{}])
    with pytest.raises(InvalidInputError, match="ids has 3 for 2 texts"):
        store.add_texts(["a", "b"], ids=["1", "2", "3"])
    with pytest.raises(InvalidInputError):
        store.add_texts(["a", "b"], [{}, {"x": object()}])
    assert store.similarity_search("a") == []
