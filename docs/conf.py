"""Sphinx settings of the site, built from the folder that `pages.py` gathers, without network access."""

from truearm import __version__

project = "truearm"
author = "the truearm authors"
version = release = __version__
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"truearm {version}"
html_extra_path = ["made/extra"]
html_static_path = html_css_files = ["site.css"]
html_show_sphinx = html_show_copyright = False
smartquotes = False  # they turn the two hyphens of options into a dash
pygments_style = "friendly"
pygments_dark_style = "native"
suppress_warnings = ["misc.highlighting_failure"]  # blocks with program output
