"""A system that asks an HTTP service: posts each line to the URL, and prints the answer. The key is in API_KEY.

python examples/documents/http_client.py URL
"""

import os
import sys

import requests
from requests.adapters import HTTPAdapter, Retry

session = requests.Session()
retries = Retry(5, backoff_factor=1, status_forcelist=[429, 500, 502, 503, 504], allowed_methods=None)
session.mount("http", HTTPAdapter(max_retries=retries))
session.headers.update({"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['API_KEY']}"})
for line in sys.stdin:
    response = session.post(sys.argv[1], data=line.encode(), timeout=60)
    response.raise_for_status()
    print(response.text.replace("\n", " "), flush=True)
