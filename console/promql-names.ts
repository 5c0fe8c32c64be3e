/** Names of metrics and labels as PromQL writes them: those that are no plain ones in quotes. */

const PLAIN_NAME = /^[a-z_:][a-z0-9_:]*$/i
const PLAIN_LABEL = /^[a-z_][a-z0-9_]*$/i

export function labelName(name: string): string {
  return PLAIN_LABEL.test(name) ? name : JSON.stringify(name)
}

/** `up{job="a"}` or `{"a b"}`; empty if there is neither a name nor any of the others. */
export function selectorText(name: string, matchers: readonly string[]): string {
  const isPlain = PLAIN_NAME.test(name)
  const inside = name === '' || isPlain ? matchers : [JSON.stringify(name), ...matchers]
  return `${isPlain ? name : ''}${inside.length === 0 ? '' : `{${inside.join(', ')}}`}`
}

/** A value as Prometheus writes it. */
export function numberText(value: number): string {
  return Math.abs(value) === Number.POSITIVE_INFINITY ? `${value > 0 ? '+' : '-'}Inf` : String(value)
}
