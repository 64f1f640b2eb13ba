"""Become LiteLLM's proxy in front of an engine. Runs in an environment that has it.

litellm_proxy.py PORT UPSTREAM
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

KEY = "key-of-the-vectors"


def main() -> None:
    port, upstream = sys.argv[1:]
    engine = {"model": "openai/m", "api_base": f"{upstream}/v1", "api_key": KEY, "max_retries": 0}
    config = {
        "model_list": [{"model_name": "m", "litellm_params": engine}],
        # What is tested is what it says of one failure, and not how it goes round it.
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        "general_settings": {"master_key": KEY},
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
        json.dump(config, file)  # JSON is YAML
    permit = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [sys.executable, "-m", "litellm.proxy.proxy_cli", "--config", file.name, "--host", "127.0.0.1"]
    os.execve(command[0], [*command, "--port", port], {**os.environ, **permit})


if __name__ == "__main__":
    main()
