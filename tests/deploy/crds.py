"""Schemas of the Prometheus operator's and KEDA's objects, as far as they are used here: kubernetes-validate has none.
Written by hand after their API references (monitoring.coreos.com/v1, keda.sh/v1alpha1); unknown keys are mistakes."""

from typing import Any

Schema = dict[str, Any]
STRING: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
LABELS: Schema = {"type": "object", "additionalProperties": STRING}


def closed(required: str = "", **properties: Schema) -> Schema:
    """An object with these keys and no others."""
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


def listed(items: Schema) -> Schema:
    """A list that is not empty."""
    return {"type": "array", "items": items, "minItems": 1}


def kind(version: str, name: str, spec: Schema) -> Schema:
    """An object of Kubernetes."""
    metadata = closed("name", name=STRING, namespace=STRING, labels=LABELS, annotations=LABELS)
    return closed("apiVersion kind metadata spec", apiVersion={"const": version}, kind={"const": name},
                  metadata=metadata, spec=spec)  # fmt: skip


DURATION: Schema = {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"}
SELECTED = closed("matchLabels", matchLabels=LABELS)
SECRET_KEY = closed("name key", name=STRING, key=STRING)
ENDPOINT = closed(
    "port",
    port=STRING,
    path=STRING,
    interval=DURATION,
    scheme={"enum": ["http", "https"]},
    authorization=closed("credentials", type=STRING, credentials=SECRET_KEY),
)
RULE = closed("expr", record=STRING, alert=STRING, expr=STRING, labels=LABELS, annotations=LABELS) | {
    "oneOf": [{"required": ["record"]}, {"required": ["alert"]}]
}
POLICY = closed("type value periodSeconds", type={"enum": ["Pods", "Percent"]}, value=COUNT, periodSeconds=COUNT)
DIRECTION = closed("policies", stabilizationWindowSeconds=COUNT, policies=listed(POLICY))
TRIGGER = closed(
    "type metadata",
    type={"const": "prometheus"},
    metricType={"enum": ["AverageValue", "Value"]},
    metadata=closed("serverAddress query threshold", serverAddress=STRING, query=STRING,
                    threshold=STRING, ignoreNullValues={"enum": ["true", "false"]}),
)  # fmt: skip
SCHEMAS: dict[str, Schema] = {
    "ServiceMonitor": kind(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        closed("selector endpoints", selector=SELECTED, endpoints=listed(ENDPOINT)),
    ),
    "PrometheusRule": kind(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        closed("groups", groups=listed(closed("name rules", name=STRING, interval=DURATION, rules=listed(RULE)))),
    ),
    "ScaledObject": kind(
        "keda.sh/v1alpha1",
        "ScaledObject",
        closed(
            "scaleTargetRef triggers",
            scaleTargetRef=closed("name", name=STRING, kind=STRING, apiVersion=STRING),
            minReplicaCount=COUNT,
            maxReplicaCount=COUNT,
            pollingInterval=COUNT,
            triggers=listed(TRIGGER),
            advanced=closed(
                horizontalPodAutoscalerConfig=closed(behavior=closed(scaleUp=DIRECTION, scaleDown=DIRECTION))
            ),
        ),
    ),
}
