/**
 * Patterns of destinations [MON 14], such as `tls://*.example.org:*`. Scheme, host, port and path are matched separately, so
 * that no `*` reaches from one of them into the next: `ws://127.0.0.1:80/.example.org:1/` has nothing to do with
 * `ws://*.example.org:*`.
 */

/** The parts of a URL, or of a pattern of URLs. */
export interface UrlParts {
  /** Lower case. */
  readonly scheme: string
  /** Lower case; an IPv6 address is in brackets. */
  readonly host: string
  readonly port: string | undefined
  /** Begins with "/". */
  readonly path: string | undefined
}

const SHAPE = /^([^:/]+):\/\/(\[[^\]]*\]|[^:/[\]]+)(?::([^:/]+))?(\/.*)?$/

/** Returns undefined if `text` does not have the form `scheme://host`, with `:port` and `/path` if given. */
export function splitUrl(text: string): UrlParts | undefined {
  const [, scheme, host, port, path] = SHAPE.exec(text) ?? []
  if (scheme === undefined || host === undefined) return undefined
  return { scheme: scheme.toLowerCase(), host: host.toLowerCase(), port, path }
}

/**
 * Whether a pattern matches a URL; `matches` compares one part. A pattern without a path means every path. One without a port
 * is no longer accepted, but may be stored: it means every port if its host ends with `*`, as it did, and otherwise matches nothing.
 */
export function matchesUrl(
  pattern: UrlParts,
  url: UrlParts,
  matches: (pattern: string, text: string) => boolean,
): boolean {
  const isOpen = pattern.path === undefined && pattern.host.endsWith('*')
  const port = pattern.port ?? (isOpen ? '*' : '')
  if (!matches(pattern.scheme, url.scheme) || !matches(pattern.host, url.host)) return false
  if (!matches(port, url.port ?? '*')) return false
  return pattern.path === undefined || matches(pattern.path, url.path ?? '/*')
}
