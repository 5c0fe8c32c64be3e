/**
 * Names in the form that Prometheus takes everywhere ("Data model", prometheus.io/docs/concepts/data_model): letters, digits
 * and `_`, in names of metrics also `:`, and no digit in front. What else a name holds becomes `_`.
 */

/** The name of a metric. Different names may become one. */
export function prometheusName(name: string): string {
  return leading(name.replace(/[^a-zA-Z0-9_:]/gu, '_'))
}

/** The name of a label. Those that begin with `__` are Prometheus' own, so that only one `_` is left in front. */
export function prometheusLabel(name: string): string {
  return leading(name.replace(/[^a-zA-Z0-9_]/gu, '_').replace(/^__+/, '_'))
}

function leading(name: string): string {
  return /^[0-9]/.test(name) ? `_${name}` : name
}
