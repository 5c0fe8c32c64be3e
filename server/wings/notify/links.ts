/** Where the console shows what a notification is about. */
import { ACKNOWLEDGE_PATH } from '../../kit/acknowledging.ts'
import type { NotifiedAlert } from './alert.ts'
import { isApproval } from './approval-alerts.ts'

/** Servers and mail programs cut longer addresses off. */
const MAX_QUERY = 4_000

/** The view of what a notification is about: alerts, or what waits for approval; '' if nobody has said where the console is. */
export function viewLink(externalUrl: string, alerts: readonly Pick<NotifiedAlert, 'kind'>[]): string {
  if (externalUrl === '') return ''
  return `${externalUrl}/#/${alerts.every(isApproval) ? 'controls/approvals' : 'alerts'}`
}

/** The expression of the rule in the view of queries, as far as it is known; of what waits for approval, the view of that. */
export function generatorUrl(externalUrl: string, alert: Pick<NotifiedAlert, 'query' | 'kind'>): string {
  if (isApproval(alert)) return viewLink(externalUrl, [alert])
  const { query = '' } = alert
  if (externalUrl === '' || query === '' || query.length > MAX_QUERY) return externalUrl
  return `${externalUrl}/#/query?expr=${encodeURIComponent(query)}&show=chart`
}

/** Where buttons send their tokens: beside the console, which may be below the rest of the server. */
export function acknowledgeUrl(externalUrl: string): string {
  return `${externalUrl.replace(/\/console$/, '')}${ACKNOWLEDGE_PATH}`
}
