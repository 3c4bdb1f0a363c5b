# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
The demo search app in the browser (extra `app`).

`indexes` opens what is searched, `searching` holds the models and does the work, `page` turns results into HTML, and
`interface` wires these to Gradio; only the last one knows Gradio.
"""

import os

# Gradio and Haystack read these as they are imported: no app of this package reports to anybody.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
