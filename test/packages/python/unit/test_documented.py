"""Every public name is in docs/client-python.md."""

import dataclasses
import inspect
import pathlib
import unittest

import cinnabar

PAGE = (pathlib.Path(__file__).parents[4] / "docs/client-python.md").read_text()


class Names(unittest.TestCase):
    def expect(self, name):
        with self.subTest(name):
            self.assertRegex(PAGE, rf"\b{name}\b")

    def test_of_the_package(self):
        for name in cinnabar.__all__:
            self.expect(name)

    def test_of_a_consumer_and_of_a_sample(self):
        for kind in (cinnabar.Consumer, cinnabar.Sample):
            for name in dir(kind):
                if not name.startswith("_") and name != "open":
                    self.expect(name)

    def test_of_the_events(self):
        for kind in (cinnabar.Gap, cinnabar.Notice, cinnabar.Restored, cinnabar.Disconnected, cinnabar.Retrying, cinnabar.Closed):
            self.expect(kind.__name__)
            for field in dataclasses.fields(kind):
                self.expect(field.name)

    def test_of_the_arguments_of_connect(self):
        for name in inspect.signature(cinnabar.connect).parameters:
            self.expect(name)

    def test_have_docstrings(self):
        for name in dir(cinnabar.Consumer):
            if not name.startswith("_"):
                self.assertTrue(inspect.getdoc(getattr(cinnabar.Consumer, name)), name)
