"""Reading and writing files safely: atomic writes, locks, untrusted JSON and safetensors, CSV."""
