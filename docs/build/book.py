"""What `make book` adds to the pages in `docs`: the reference of kinds, the API of the Python package, the list of decisions, the changelog.

A hook of MkDocs. Nothing of it is stored in the repository, so none of it can be out of date.
"""

import ast
import re
import subprocess
import tempfile
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent.parent
NETLOOM = ROOT / "target" / "release" / "netloom"
PACKAGE = ROOT / "python" / "netloom"

#: The entry of the navigation below which the pages of all axes are put.
REFERENCE = "reference/index.md"

#: Classes that users meet as attributes, beside those that the package exports.
MET = {"StudyPlots": "study.plot", "OutcomePlots": "outcome.plot"}

#: Methods that Python calls, and what they are for a reader.
OPERATORS = {
    "__getitem__": "[…]",
    "__setitem__": "[…] = …",
    "__delitem__": "del […]",
    "__contains__": "in",
    "__len__": "len()",
}


def reference(netloom=NETLOOM):
    """The pages of the reference by their addresses, as netloom writes them."""
    if not netloom.exists():
        raise FileNotFoundError(
            f"{netloom}: the reference is written by netloom itself; `make build` builds it"
        )
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([netloom, "list", "--markdown", folder], check=True, capture_output=True)
        pages = sorted(Path(folder).rglob("*.md"))
        return {f"reference/{page.relative_to(folder).as_posix()}": page.read_text() for page in pages}


def decisions(folder=ROOT / "docs" / "decisions"):
    """The list of the decisions, by their titles."""
    rows = []
    for page in sorted(folder.glob("[0-9]*.md")):
        title = page.read_text().split("\n", 1)[0].removeprefix("# ").strip()
        title = re.sub(r"^\d+[.:]?\s*", "", title)
        rows.append(f"| {page.name[:3]} | [{title}]({page.name}) |")
    head = "# Decisions\n\nWhy netloom is as it is: one short page per decision that a successor would question.\n\n| | |\n| --- | --- |\n"
    return head + "\n".join(rows) + "\n"


def changelog(file=ROOT / "CHANGELOG.md"):
    """The changelog with its links as the book needs them."""
    return file.read_text().replace("](docs/", "](")


def _rust_docs():
    """What the native classes' doc comments say, by class and method."""
    docs = {}
    for file in sorted((ROOT / "python" / "src").glob("*.rs")):
        inside, comment = None, []
        for line in file.read_text().splitlines():
            if found := re.match(r"impl (\w+) \{", line):
                inside = found[1]
            text = line.strip()
            if text.startswith("///"):
                comment.append(text[3:].strip())
            elif found := re.match(r"(?:pub(?:\(crate\))? )?fn (\w+)", text):
                docs[inside, found[1]] = " ".join(comment)
                comment = []
            elif not text.startswith("#["):
                comment = []
    return docs


def _signature(name, function):
    arguments = ast.unparse(function.args)
    arguments = re.sub(r"^(self|cls)(, )?", "", arguments)
    returned = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"{name}({arguments}){returned}"


def _text(docstring):
    """A docstring as Markdown: examples become blocks of code, double backquotes single ones."""
    lines, example = [], False
    for line in docstring.splitlines():
        is_code = line.startswith((">>>", "..."))
        if is_code != example:
            lines.append("```python" if is_code else "```")
            example = is_code
        if is_code:
            lines.append(re.sub(r"^(>>>|\.\.\.) ?", "", line))
        else:
            lines.append(re.sub(r":\w+:`", "`", line).replace("``", "`"))
    if example:
        lines.append("```")
    return "\n".join(lines)


def _is_property(function):
    return any(
        isinstance(by, ast.Name) and by.id in {"property", "cached_property"}
        for by in function.decorator_list
    )


def _class(node, rust):
    lines = [f"\n## `{MET.get(node.name, node.name)}`\n", _text(ast.get_docstring(node) or ""), ""]
    for member in node.body:
        if not isinstance(member, ast.FunctionDef):
            continue
        name = member.name
        doc = ast.get_docstring(member) or rust.get((node.name, "new" if name == "__init__" else name), "")
        # Users make no outcomes and errors themselves.
        is_made = (
            name == "__init__"
            and "_netloom." not in ast.unparse(member.args)
            and not node.name.endswith("Error")
        )
        is_shown = not name.startswith("_") or name in OPERATORS or is_made
        if not is_shown or not doc:
            continue
        if name == "__init__":
            heading = _signature(node.name, member).removesuffix(" -> None")
        elif name in OPERATORS:
            heading = OPERATORS[name]
        elif _is_property(member):
            heading = f"{name}: {ast.unparse(member.returns)}" if member.returns else name
        else:
            heading = _signature(name, member)
        lines += [f"\n### `{heading}`\n", _text(doc), ""]
    return "\n".join(lines)


def api():
    """The page of the Python package: everything in its `__all__`, from the docstrings."""
    rust = _rust_docs()
    package = ast.parse((PACKAGE / "__init__.py").read_text())
    known = {}
    for imported in (node for node in package.body if isinstance(node, ast.ImportFrom)):
        module = PACKAGE / f"{imported.module.removeprefix('netloom.')}.py"
        file = module if module.exists() else module.with_suffix(".pyi")
        named = {alias.name for alias in imported.names}
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in named:
                known[node.name] = node
    names = next(
        ast.literal_eval(node.value)
        for node in package.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    )
    parts = ["# The Python package\n", _text(ast.get_docstring(package) or ""), ""]
    functions = [known[name] for name in names if isinstance(known.get(name), ast.FunctionDef)]
    classes = [known[name] for name in names if isinstance(known.get(name), ast.ClassDef)]
    parts.append("\n## Functions\n")
    for node in functions:
        parts += [f"\n### `{_signature(node.name, node)}`\n", _text(ast.get_docstring(node) or ""), ""]
    plots = ast.parse((PACKAGE / "_plot.py").read_text())
    classes += [node for node in plots.body if isinstance(node, ast.ClassDef) and node.name in MET]
    parts += [_class(node, rust) for node in classes]
    return "\n".join(parts)


def generated():
    """All pages that are not in the repository, by their addresses."""
    pages = reference()
    pages["decisions/index.md"] = decisions()
    pages["changelog.md"] = changelog()
    pages["api.md"] = api()
    return pages


PAGES = {}


def on_config(config):
    """Generates the pages, and puts those of the axes into the navigation."""
    PAGES.clear()
    PAGES.update(generated())
    axes = [
        page for page in PAGES if page.count("/") == 1 and page.startswith("reference/") and page != REFERENCE
    ]
    order = PAGES[REFERENCE]
    axes.sort(key=lambda page: order.find(f"]({page.removeprefix('reference/')})"))

    def title(page):
        return PAGES[page].split("\n", 1)[0].removeprefix("# ").replace("`", "")

    def expand(items):
        for item in items:
            for name, value in item.items():
                if isinstance(value, list):
                    expand(value)
                elif value == REFERENCE:
                    item[name] = [{"Overview": REFERENCE}, *({title(page): page} for page in axes)]

    expand(config.nav)
    return config


def on_files(files, config):
    """Adds the pages to those of the folder."""
    for address, text in PAGES.items():
        files.append(File.generated(config, address, content=text))
    return files
