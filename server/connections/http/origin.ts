/**
 * Which pages may open the WebSocket [MON 13]: those of the same host, and the operator's list. A request without Origin is
 * no page: browsers always send it.
 */

/**
 * Why an origin is refused, or undefined. `host` is the Host header. `encrypted`: the WebSocket is; without TLS both schemes
 * are of this host, since something in front may speak TLS for it.
 */
export function originProblem(
  origin: string | undefined,
  host: string | undefined,
  encrypted: boolean,
  allowed: readonly string[],
): string | undefined {
  if (origin === undefined) return undefined
  if (allowed.includes(origin)) return undefined
  const schemes = encrypted ? ['https'] : ['http', 'https']
  const isSameHost = host !== undefined && host !== '' && schemes.some((scheme) => origin === `${scheme}://${host}`)
  return isSameHost ? undefined : 'pages of this origin may not connect; see `http.allowed_origins`'
}
