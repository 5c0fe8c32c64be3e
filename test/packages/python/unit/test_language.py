"""The sources are valid in the oldest Python that the package promises, and import nothing but the standard library."""

import ast
import pathlib
import re
import sys
import unittest

PACKAGE = pathlib.Path(__file__).parents[4] / "packages/python"
SOURCES = sorted((PACKAGE / "src").rglob("*.py"))


class Sources(unittest.TestCase):
    def test_are_valid_in_the_oldest_python(self):
        (minor,) = re.findall(r'requires-python = ">=3\.(\d+)"', (PACKAGE / "pyproject.toml").read_text())
        self.assertGreater(len(SOURCES), 10)
        for path in SOURCES:
            with self.subTest(path.name):
                ast.parse(path.read_text(), feature_version=(3, int(minor)))

    @unittest.skipIf(sys.version_info < (3, 10), "this Python does not say what its standard library is")
    def test_import_the_standard_library_alone(self):
        for path in SOURCES:
            for node in ast.walk(ast.parse(path.read_text())):
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [node.module]
                for name in names:
                    with self.subTest(f"{path.name}: {name}"):
                        self.assertIn(name.split(".")[0], sys.stdlib_module_names)

    def test_say_all_that_they_export(self):
        import cinnabar

        for name in cinnabar.__all__:
            self.assertTrue(hasattr(cinnabar, name), name)
        self.assertTrue((PACKAGE / "src/cinnabar/py.typed").exists())
