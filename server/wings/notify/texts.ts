/** A notification in words, for people. */
import { type NotifiedAlert, textOfLabel } from './alert.ts'
import { countOf, type Notification } from './notification.ts'

const MAX_LINES = 10
const MAX_LINE = 500
const MAX_NAMES = 3
/** What a phone shows as a title, and as one message: ntfy makes a file of longer ones. */
const MAX_TITLE = 250
const MAX_TEXT = 3_500

/** Names the alerts, and says whether they fire. */
export function titleOf(notification: Notification): string {
  const names = [...new Set(notification.alerts.map((alert) => textOfLabel(alert, 'alertname')))]
  const text = names.slice(0, MAX_NAMES).join(', ')
  const [fires, ended] = [countOf(notification, 'firing'), countOf(notification, 'resolved')]
  const count = (number: number): string => (number > 1 ? ` (${number})` : '')
  const said = fires === 0 ? `Resolved: ${text}${count(ended)}` : `${text}${count(fires)}`
  return (notification.isTest === true ? `[TEST] ${said}` : said).slice(0, MAX_TITLE)
}

/** A line for each alert, of which there are at most ten. */
export function alertsText(notification: Notification): string {
  return linesOf(notification).join('\n').slice(0, MAX_TEXT)
}

function linesOf({ alerts, truncated }: Notification): readonly string[] {
  const lines = alerts.slice(0, MAX_LINES).map((alert) => lineOf(alert).slice(0, MAX_LINE))
  const more = alerts.length - lines.length + truncated
  return more > 0 ? [...lines, `and ${more} more`] : lines
}

function lineOf(alert: NotifiedAlert): string {
  const annotation = (wanted: string): string => alert.annotations.find(([name]) => name === wanted)?.[1] ?? ''
  const said = annotation('summary') || annotation('description')
  const labels = alert.labels.filter(([name]) => name !== 'alertname').map(([name, text]) => `${name}=${text}`)
  const text = said === '' ? [textOfLabel(alert, 'alertname'), ...labels].join(' ') : said
  return alert.state === 'resolved' ? `resolved: ${text}` : text
}
