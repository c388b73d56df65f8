"""A result as one page: a file that needs no network, no server and no script to be read.

The script only moves what Python computed (`truearm.report.picture`). The template, the style and the script
are in `page/`; every word of a user goes through `charts.text`.
"""
