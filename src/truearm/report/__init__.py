"""Results for people and for other programs: text, Markdown, JSON, CSV, HTML. Nothing here measures or decides."""
