"""Ids on disk: the same as without, from several processes at once, and never in the way."""

import multiprocessing
import os
import sqlite3
import stat

import numpy as np
import pytest

from repo2ctx.config import TokensConfig
from repo2ctx.id_cache import CachedTokenizer, IdCache
from repo2ctx.tokens import load_tokenizer

LONG = "def f(x):\n    return x + 1  # größe\n" * 100
WHO = "a tokenizer"


def ids_of(*numbers):
    return np.asarray(numbers, np.int32)


def entry(folder):
    with sqlite3.connect(folder / "ids.sqlite") as db:
        return db.execute("SELECT key, value FROM ids").fetchall()


def test_ids_come_back_in_another_process_s_time(tmp_path):
    with IdCache(tmp_path / "deep" / "ids") as cache:
        assert cache.get(WHO, "a") is None
        cache.put(WHO, "a", ids_of(1, 2**31 - 1, 0))
        cache.put(WHO, "none", ids_of())
        assert cache.get(WHO, "a").tolist() == [1, 2**31 - 1, 0]  # before it is written
    with IdCache(tmp_path / "deep" / "ids") as cache:
        found = cache.get(WHO, "a")
        assert found.tolist() == [1, 2**31 - 1, 0]
        assert found.dtype == np.int32
        assert cache.get(WHO, "none").tolist() == []
        assert cache.get("another", "a") is None
        assert cache.get(WHO, "b") is None
        assert (cache.hits, cache.misses, cache.notice) == (2, 2, "")


def test_a_cached_tokenizer_gives_the_tokenizer_s_ids_and_asks_it_once(tmp_path):
    plain = load_tokenizer(TokensConfig())
    with IdCache(tmp_path) as cache:
        tokenizer = CachedTokenizer(plain, cache)
        for _ in range(2):
            assert tokenizer.encode(LONG) == plain.encode(LONG)
            assert tokenizer.encode("short") == plain.encode("short")
        assert (cache.hits, cache.misses) == (1, 1)
        assert tokenizer.decode(tokenizer.encode_array(LONG)) == LONG
        for name in ("name", "fingerprint", "opening", "answer", "eos", "vocabulary_size", "code", "notice"):
            assert getattr(tokenizer, name) == getattr(plain, name)
        assert tokenizer.control_tokens() == plain.control_tokens()


def test_ids_of_one_engine_are_not_those_of_the_next(tmp_path):
    class Changing:
        name, fingerprint, opening, answer, eos, vocabulary_size, notice, code = "x", "f", (), (), 0, 9, "", "first"

        def encode_array(self, text):
            return ids_of(1 if self.code == "first" else 2)

    inner = Changing()
    with IdCache(tmp_path) as cache:
        tokenizer = CachedTokenizer(inner, cache)
        assert tokenizer.encode(LONG) == [1]
        inner.code = "second"
        assert tokenizer.encode(LONG) == [2]


@pytest.mark.parametrize("damage", ["bit", "short", "empty", "moved", "text"])
def test_a_wrong_entry_is_not_believed_and_is_replaced(tmp_path, damage):
    with IdCache(tmp_path) as cache:
        cache.put(WHO, "a", ids_of(*range(500)))
        cache.put(WHO, "b", ids_of(7))
    (key, value), (_, other) = sorted(entry(tmp_path), key=lambda row: -len(row[1]))
    wrong = {
        "bit": value[:40] + bytes([value[40] ^ 1]) + value[41:],
        "short": value[:-3],
        "empty": b"",
        "moved": other,
        "text": "text",
    }
    with sqlite3.connect(tmp_path / "ids.sqlite") as db:
        db.execute("UPDATE ids SET value = ? WHERE key = ?", (wrong[damage], key))
    with IdCache(tmp_path) as cache:
        assert cache.get(WHO, "a") is None
        assert cache.get(WHO, "b").tolist() == [7]
    assert len(entry(tmp_path)) == 1  # the wrong one is taken out
    with IdCache(tmp_path) as cache:
        cache.put(WHO, "a", ids_of(1, 2))
    with IdCache(tmp_path) as cache:
        assert cache.get(WHO, "a").tolist() == [1, 2]
        assert not cache.notice


@pytest.mark.parametrize("damage", ["garbage", "truncated", "page", "table"])
def test_a_damaged_file_is_told_and_removed(tmp_path, damage):
    with IdCache(tmp_path) as cache:
        for i in range(200):
            cache.put(WHO, f"{i}", np.arange(i, i + 3000, dtype=np.int32))
    path = tmp_path / "ids.sqlite"
    data = path.read_bytes()
    if damage == "table":
        path.unlink()
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE ids (something)")
    else:
        changed = {
            "garbage": b"nonsense" * 1000,
            "truncated": data[: len(data) // 3],
            "page": data[:4096] + b"\xff" * (len(data) - 4096),
        }
        path.write_bytes(changed[damage])
    told = ""
    with IdCache(tmp_path) as cache:
        found = [cache.get(WHO, f"{i}") for i in range(200)]
        cache.put(WHO, "more", ids_of(1))
        cache.flush()
        told = cache.notice
    for i, ids in enumerate(found):
        assert ids is None or ids.tolist() == list(range(i, i + 3000))
    assert "damaged" in told
    assert str(path) in told
    with IdCache(tmp_path) as cache:
        assert not cache.notice
        cache.put(WHO, "a", ids_of(1))
    with IdCache(tmp_path) as cache:
        assert cache.get(WHO, "a").tolist() == [1]


def test_a_damaged_file_that_others_have_open_is_removed_later(tmp_path):
    with IdCache(tmp_path) as cache:
        cache.put(WHO, "a", ids_of(1))
    held = IdCache(tmp_path)
    (tmp_path / "ids.sqlite").write_bytes(b"nonsense" * 1000)
    second = IdCache(tmp_path)
    assert "damaged" in second.notice
    third = IdCache(tmp_path)
    assert "another process has it open" in third.notice
    assert third.get(WHO, "a") is None
    held.close()
    with IdCache(tmp_path) as cache:
        assert not cache.notice
        cache.put(WHO, "a", ids_of(2))
        cache.flush()
        assert cache.get(WHO, "a").tolist() == [2]


def test_a_folder_that_cannot_be_used_means_no_cache(tmp_path):
    (tmp_path / "file").write_text("")
    tokenizer = load_tokenizer(TokensConfig())
    with IdCache(tmp_path / "file") as cache:
        assert "no ids are kept" in cache.notice
        cached = CachedTokenizer(tokenizer, cache)
        assert cached.encode(LONG) == tokenizer.encode(LONG)
        assert "no ids are kept" in cached.notice


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_means_no_cache(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with IdCache(tmp_path) as cache:
        assert "no ids are kept" in cache.notice
    tmp_path.chmod(stat.S_IRWXU)


def test_a_full_disk_means_no_cache(tmp_path):
    with IdCache(tmp_path) as cache:
        cache.put(WHO, "a", ids_of(1))
        cache.flush()
        # SQLite says of a file that may not grow what it says of a disk that is full.
        cache._db.execute("PRAGMA max_page_count = 1")
        cache.put(WHO, "b", np.random.default_rng(0).integers(0, 1 << 30, 100_000, np.int32))
        cache.flush()
        assert "full" in cache.notice
        assert "damaged" not in cache.notice
        assert cache.get(WHO, "a") is None
    with IdCache(tmp_path) as cache:
        assert cache.get(WHO, "a").tolist() == [1]
        assert cache.get(WHO, "b") is None


def test_the_file_is_bounded_and_what_is_used_stays(tmp_path, monkeypatch):
    bound = 1 << 20
    now = [1_000_000_000]
    monkeypatch.setattr("repo2ctx.id_cache.time.time", lambda: now[0])
    numbers = np.random.default_rng(0)
    for i in range(60):
        now[0] += 4000
        with IdCache(tmp_path, bound) as cache:
            cache.put(WHO, f"{i}", numbers.integers(0, 1 << 30, 20_000, np.int32))
            if i:
                assert cache.get(WHO, "0") is not None  # used each time
    assert (tmp_path / "ids.sqlite").stat().st_size < 1.3 * bound
    with IdCache(tmp_path, bound) as cache:
        kept = [i for i in range(60) if cache.get(WHO, f"{i}") is not None]
    assert 5 <= len(kept) < 20
    assert kept == [0, *range(60 - len(kept) + 1, 60)]


def hammer(folder, seed, rounds, queue):
    numbers = np.random.default_rng(seed)
    wrong = 0
    with IdCache(folder, 1 << 20) as cache:
        for _ in range(rounds):
            i = int(numbers.integers(0, 300))
            found = cache.get(WHO, f"{i}")
            if found is None:
                cache.put(WHO, f"{i}", np.arange(i, i + 5000, dtype=np.int32)[::-1])
                cache.flush()
            else:
                wrong += found.tolist() != list(range(i + 4999, i - 1, -1))
        queue.put((wrong, cache.hits, cache.notice))


def test_several_processes_share_it(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    workers = [context.Process(target=hammer, args=(tmp_path, seed, 400, queue)) for seed in range(4)]
    for worker in workers:
        worker.start()
    results = [queue.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert [(wrong, notice) for wrong, _, notice in results] == [(0, "")] * 4
    assert sum(hits for _, hits, _ in results) > 0
    with sqlite3.connect(tmp_path / "ids.sqlite") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_process_that_is_killed_leaves_a_cache_that_works(tmp_path):
    context = multiprocessing.get_context("spawn")
    worker = context.Process(target=hammer, args=(tmp_path, 1, 10**6, context.Queue()))
    worker.start()
    while worker.is_alive() and not (tmp_path / "ids.sqlite").exists():
        worker.join(0.05)
    worker.join(0.3)
    worker.kill()
    worker.join()
    with IdCache(tmp_path) as cache:
        cache.put(WHO, "mine", ids_of(3))
        cache.flush()
        assert cache.get(WHO, "mine").tolist() == [3]
        assert not cache.notice
