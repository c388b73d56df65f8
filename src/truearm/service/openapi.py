"""The published schema, made from the routes and their types."""

import ast
import inspect
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec

from truearm import __version__
from truearm.service import wire
from truearm.service.problems import Problem
from truearm.service.routes import ROUTES, Route

_REF = "#/components/schemas/{name}"


def schema() -> dict[str, Any]:
    """Return the description of the service as OpenAPI 3.1."""
    types = [Problem, *(kind for route in ROUTES for kind in (route.takes, route.gives) if isinstance(kind, type))]
    _, components = msgspec.json.schema_components(list(dict.fromkeys(types)), ref_template=_REF)
    for kind in components:
        for name, meaning in _meanings().get(kind, {}).items():
            components[kind]["properties"][name]["description"] = meaning
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    paths["/studies/{study}/events"] = {"get": _events()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "truearm", "version": __version__, "description": (__doc__ or "").strip()},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


@cache
def _meanings() -> dict[str, dict[str, str]]:
    """Return what stands below fields of the types, by type and field."""
    found: dict[str, dict[str, str]] = {}
    for kind in ast.parse(inspect.getsource(wire)).body:
        for field, below in pairwise(kind.body if isinstance(kind, ast.ClassDef) else ()):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                words = inspect.cleandoc(ast.literal_eval(below.value))
                found.setdefault(kind.name, {})[ast.unparse(field.target)] = words  # type: ignore[attr-defined]
    return found


def _operation(route: Route) -> dict[str, Any]:
    name = route.answer.__name__.strip("_")
    found: dict[str, Any] = {
        "operationId": name,
        "responses": _responses(route),
        "parameters": _parameters(route),
    }
    found["summary"] = (route.answer.__doc__ or "").strip()
    if route.role is not None:
        found["security"] = [{"token": []}, {}]
        found["description"] = f"Needs the role {route.role}."
    if route.takes is not None:
        found["requestBody"] = {"required": True, "content": _content(route.takes)}
    return found


def _parameters(route: Route) -> list[dict[str, Any]]:
    query = [
        {"name": name, "in": "query", "required": False, "schema": {"type": kind}, "description": meaning}
        for name, kind, meaning in route.query
    ]
    if route.tagged:
        query.append(_header("If-None-Match", "the ETag that you know"))
    if "{study}" not in route.path:
        return query
    return [
        {"name": "study", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}},
        *query,
    ]


def _header(name: str, meaning: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": meaning}


def _content(kind: type | str) -> dict[str, Any]:
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "string"}}}
    return {"application/json": {"schema": {"$ref": _REF.format(name=kind.__name__)}}}


def _responses(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {str(route.status): {"description": "Done.", "content": _content(route.gives)}}
    if route.or_json:
        found["200"]["content"]["application/json"] = {"schema": {"type": "object"}}
    if route.tagged:
        found["304"] = {"description": "It is as it was when it had the ETag of If-None-Match."}
    if route.status == 201:
        found["200"] = {"description": "The same study was there.", "content": _content(route.gives)}
    return {**found, "default": _problem()}


def _problem() -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": _REF.format(name=Problem.__name__)}}}
    return {"description": "What is wrong, and what to do.", "content": content}


def _events() -> dict[str, Any]:
    return {
        "operationId": "events",
        "summary": "Send events as they happen (server-sent events).",
        "description": "Needs the role viewer.",
        "security": [{"token": []}, {}],
        "parameters": [
            {"name": "study", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}},
            _header("Last-Event-ID", "the last position you know; all events without it"),
        ],
        "responses": {
            "200": {"description": "A stream without end.", "content": {"text/event-stream": {"schema": {}}}},
            "default": _problem(),
        },
    }
