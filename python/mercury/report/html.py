"""Tags, with everything escaped that is not one."""

from __future__ import annotations

from html import escape

__all__ = ["Html", "join", "tag"]

_VOID = {"meta", "br", "col", "rect", "circle", "line", "path"}


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(element: str, /, *children: object, **attributes: object) -> Html:
    """Write an element.

    Parameters
    ----------
    element
        Its name.
    *children
        Markup as `Html`; everything else is escaped, None left out.
    **attributes
        ``class_`` for ``class``, ``data_label`` for ``data-label``; None is left out, True
        has no value.

    Examples
    --------
    >>> tag("p", "1 < 2 ", tag("b", "yes"), class_="note")
    '<p class="note">1 &lt; 2 <b>yes</b></p>'
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if element in _VOID and not children:
        # Shapes of SVG want an end, and HTML allows one here.
        return Html(f"<{element}{given}/>")
    return Html(f"<{element}{given}>{join(children)}</{element}>")


def join(parts: object) -> Html:
    """Write several parts one after another; see `tag`."""
    if not isinstance(parts, list | tuple):
        parts = (parts,)
    texts: list[str] = []
    for part in parts:
        if isinstance(part, list | tuple):
            texts.append(join(part))
        elif part is not None:
            texts.append(part if isinstance(part, Html) else escape(str(part)))
    return Html("".join(texts))


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {name}="{escape(text)}"'
