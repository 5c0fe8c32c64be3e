/** Where the console shows what a notification is about. */
import { ACKNOWLEDGE_PATH } from '../../kit/acknowledging.ts'
import type { NotifiedAlert } from './alert.ts'

/** Servers and mail programs cut longer addresses off. */
const MAX_QUERY = 4_000

/** The view of alerts; '' if nobody has said where the console is. */
export function alertsLink(externalUrl: string): string {
  return externalUrl === '' ? '' : `${externalUrl}/#/alerts`
}

/** The expression of the rule in the view of queries, as far as it is known. */
export function generatorUrl(externalUrl: string, { query = '' }: Pick<NotifiedAlert, 'query'>): string {
  if (externalUrl === '' || query === '' || query.length > MAX_QUERY) return externalUrl
  return `${externalUrl}/#/query?expr=${encodeURIComponent(query)}&show=chart`
}

/** Where buttons send their tokens: beside the console, which may be below the rest of the server. */
export function acknowledgeUrl(externalUrl: string): string {
  return `${externalUrl.replace(/\/console$/, '')}${ACKNOWLEDGE_PATH}`
}
