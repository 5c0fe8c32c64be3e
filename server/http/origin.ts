/**
 * Which pages may open the WebSocket [MON 13]: those of the same host, and the operator's list. A request without Origin is
 * no page: browsers always send it.
 */

/** Why an origin is refused, or undefined. `host` is the Host header. */
export function originProblem(
  origin: string | undefined,
  host: string | undefined,
  allowed: readonly string[],
): string | undefined {
  if (origin === undefined) return undefined
  if (allowed.includes(origin)) return undefined
  const sameHost = host !== undefined && host !== '' && (origin === `http://${host}` || origin === `https://${host}`)
  return sameHost ? undefined : 'pages of this origin may not connect; see `http.allowed_origins`'
}
