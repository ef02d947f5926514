"""How many are above a number: counts of integers in order, changed and asked in O(log n). Pure; not thread-safe."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

BLOCK_MAX = 512
"""Different numbers in one block; a fuller one is cut in two. Moving half a block in memory takes less than a
microsecond, and a block has to be found among n / 512 of them."""


class OrderedCounts:
    """A multiset of 64-bit integers that answers how many of its members are greater than a number.

    Different numbers stand in sorted blocks, as machine integers: 16 bytes each, however many members share one. A
    Fenwick tree (Fenwick 1994) over the sizes of the blocks gives the sum of all blocks before one in O(log n).
    """

    __slots__ = ("_blocks", "_firsts", "_tree", "total")

    def __init__(self, counts: Iterable[tuple[int, int]] = ()) -> None:
        """``counts`` are pairs of a number and how often it stands there, sorted, each number once."""
        self.total = 0
        self._blocks: list[tuple[array[int], array[int]]] = []
        numbers, times = array("q"), array("q")
        for number, count in counts:
            if len(numbers) == BLOCK_MAX // 2:
                self._blocks.append((numbers, times))
                numbers, times = array("q"), array("q")
            numbers.append(number)
            times.append(count)
            self.total += count
        self._blocks.append((numbers, times))
        self._firsts: list[int] = []
        self._tree: list[int] = []
        self._plant()

    def __len__(self) -> int:
        """How many different numbers there are."""
        return sum(len(numbers) for numbers, _ in self._blocks)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Every number and how often it stands there, in order."""
        for numbers, times in self._blocks:
            yield from zip(numbers, times, strict=True)

    def add(self, number: int, count: int = 1) -> None:
        """Put a number in ``count`` times, or take it out for a negative count; never below none."""
        index = max(0, bisect_right(self._firsts, number) - 1)
        numbers, times = self._blocks[index]
        position = bisect_left(numbers, number)
        present = times[position] if position < len(numbers) and numbers[position] == number else 0
        count = max(count, -present)
        if count == 0:
            return
        if present == 0:
            numbers.insert(position, number)
            times.insert(position, count)
        elif present + count:
            times[position] += count
        else:
            del numbers[position], times[position]
        self.total += count
        self._change(index, count)
        if len(numbers) > BLOCK_MAX or (not numbers and len(self._blocks) > 1):
            self._split(index)
        elif numbers:
            self._firsts[index] = numbers[0]

    def above(self, number: int) -> int:
        """How many members are greater than a number."""
        index = max(0, bisect_right(self._firsts, number) - 1)
        numbers, times = self._blocks[index]
        inside = bisect_right(numbers, number)
        return self.total - self._before(index) - sum(times[:inside])

    def count(self, number: int) -> int:
        """How often a number stands there."""
        numbers, times = self._blocks[max(0, bisect_right(self._firsts, number) - 1)]
        position = bisect_left(numbers, number)
        return times[position] if position < len(numbers) and numbers[position] == number else 0

    def _split(self, index: int) -> None:
        """Cut a full block in two, or take an empty one out. Happens once in hundreds of changes."""
        numbers, times = self._blocks.pop(index)
        half = len(numbers) // 2
        if numbers:
            self._blocks[index:index] = [(numbers[:half], times[:half]), (numbers[half:], times[half:])]
        self._plant()

    def _plant(self) -> None:
        """Make the tree anew: node i, counted from 1, holds the sum of the i & -i blocks that end with it."""
        self._firsts = [numbers[0] if numbers else 0 for numbers, _ in self._blocks]
        tree = [0, *(sum(times) for _, times in self._blocks)]
        for node in range(1, len(tree)):
            parent = node + (node & -node)
            if parent < len(tree):
                tree[parent] += tree[node]
        self._tree = tree

    def _change(self, index: int, count: int) -> None:
        node = index + 1
        while node < len(self._tree):
            self._tree[node] += count
            node += node & -node

    def _before(self, index: int) -> int:
        total = 0
        while index:
            total += self._tree[index]
            index -= index & -index
        return total
