"""Which COMMITs are due, against a server that remembers what it has sent on the present connection."""

import random
import unittest

from cinnabar._acknowledgements import Acknowledgements


class InOrder(unittest.TestCase):
    def test_many_values_are_committed_by_one_command(self):
        acks = Acknowledgements()
        for transaction in (5, 6, 9):
            self.assertTrue(acks.received(transaction))
            acks.handled(transaction)
        due = acks.take_due()
        self.assertEqual((due.singles, due.through), ([], 9))
        self.assertIsNone(acks.take_due())

    def test_what_comes_again_is_committed_again_and_not_handed_out(self):
        acks = Acknowledgements()
        acks.received(5)
        acks.handled(5)
        acks.take_due()
        acks.reconnected()
        self.assertIsNone(acks.take_due())
        self.assertFalse(acks.received(5))
        self.assertEqual(acks.take_due().through, 5)

    def test_what_an_earlier_run_has_handled_is_not_new(self):
        acks = Acknowledgements(after=7)
        self.assertFalse(acks.received(7))
        self.assertEqual(acks.take_due().through, 7)
        self.assertTrue(acks.received(8))

    def test_nothing_is_committed_that_was_skipped(self):
        acks = Acknowledgements()
        for transaction in (1, 2, 3):
            acks.received(transaction)
        acks.handled(1)
        acks.skipped(2)
        acks.handled(3)
        due = acks.take_due()
        self.assertEqual((due.singles, due.through), ([3], 1))

    def test_a_value_without_a_transaction_needs_nothing(self):
        acks = Acknowledgements()
        self.assertTrue(acks.received(0))
        self.assertTrue(acks.received(0))
        acks.handled(0)
        acks.handled_out_of_order(0)
        self.assertIsNone(acks.take_due())


def arrived(acks, *transactions):
    return [acks.received(transaction) for transaction in transactions]


class ByTheProgram(unittest.TestCase):
    def due(self, acks):
        due = acks.take_due()
        return None if due is None else (due.singles, due.through)

    def test_in_their_order_go_as_one(self):
        acks = Acknowledgements(0, True)
        arrived(acks, 3, 4, 9)
        acks.committed(3)
        acks.committed(4)
        self.assertEqual(self.due(acks), ([], 4))
        acks.committed(4)
        acks.committed(8)
        self.assertIsNone(acks.take_due())

    def test_out_of_order_go_one_by_one_until_nothing_before_them_is_left(self):
        acks = Acknowledgements(0, True)
        arrived(acks, 1, 2, 3, 4, 5)
        acks.committed(3)
        acks.committed(2)
        self.assertEqual(self.due(acks), ([3, 2], 0))
        acks.committed(1)
        self.assertEqual(self.due(acks), ([], 1))
        acks.committed(4)
        self.assertEqual(self.due(acks), ([], 4))

    def test_cover_nothing_that_was_left_uncommitted_also_when_it_comes_again(self):
        acks = Acknowledgements(0, True)
        arrived(acks, 1, 2, 3)
        acks.committed(2)
        acks.committed(3)
        self.assertEqual(self.due(acks), ([2, 3], 0))
        acks.reconnected()
        self.assertEqual(arrived(acks, 1, 2, 3), [False, False, False])
        due = acks.take_due()
        self.assertEqual((due.singles, due.through), ([2, 3], 0))
        acks.stored(due)
        acks.committing(1)
        arrived(acks, 4)
        acks.committed(4)
        self.assertEqual(self.due(acks), ([], 4))


class Random(unittest.TestCase):
    def test_in_the_end_exactly_what_was_handled_is_committed(self):
        for seed in range(200):
            for is_explicit in (False, True):
                with self.subTest(seed=seed, is_explicit=is_explicit):
                    self._one(random.Random(seed), is_explicit)

    def _one(self, chance, is_explicit):
        acks = Acknowledgements(0, is_explicit)
        handle = acks.committed if is_explicit else acks.handled
        kept, sent, committed, handled, skipped, waiting = [], set(), set(), set(), set(), []
        last = 0

        def receive(transaction):
            sent.add(transaction)
            if acks.received(transaction):
                self.assertNotIn(transaction, handled | skipped)
                waiting.append(transaction)

        def commit():
            due = acks.take_due()
            if due is None:
                return
            for transaction in due.singles:
                committed.add(transaction)
            committed.update(one for one in sent if one <= due.through)
            if chance.random() < 0.5:
                acks.stored(due)

        for _ in range(chance.randrange(10, 80)):
            step = chance.random()
            if step < 0.4:
                last += chance.randrange(1, 3)
                kept.append(last)
                receive(last)
            elif step < 0.7 and waiting:
                transaction = waiting.pop(chance.randrange(len(waiting)) if is_explicit else 0)
                if chance.random() < 0.1:
                    if not is_explicit:
                        acks.skipped(transaction)
                    skipped.add(transaction)
                elif chance.random() < 0.1 and transaction == last and not is_explicit:
                    acks.handled_out_of_order(transaction)
                    handled.add(transaction)
                else:
                    handle(transaction)
                    handled.add(transaction)
            elif step < 0.9:
                commit()
            else:
                # The connection is lost, perhaps before the last COMMITs were stored.
                sent.clear()
                acks.reconnected()
                for transaction in [one for one in kept if one not in committed]:
                    receive(transaction)
        for transaction in waiting:
            handle(transaction)
            handled.add(transaction)
        for _ in range(3):
            commit()
        self.assertEqual(committed & skipped, set())
        self.assertLessEqual(committed, handled)
        self.assertEqual(handled - committed, set())
