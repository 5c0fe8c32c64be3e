/** A notification in words, for people. */
import { type NotifiedAlert, textOfLabel } from './alert.ts'
import { isApproval } from './approval-alerts.ts'
import { countOf, type Notification } from './notification.ts'

const MAX_LINES = 10
const MAX_LINE = 500
const MAX_NAMES = 3
/** What a phone shows as a title, and as one message: ntfy makes a file of longer ones. */
const MAX_TITLE = 250
const MAX_TEXT = 3_500

/** Names the alerts, and says whether they fire. */
export function titleOf(notification: Notification): string {
  const names = [...new Set(notification.alerts.map(nameOf))]
  const text = names.slice(0, MAX_NAMES).join(', ')
  const [fires, ended] = [countOf(notification, 'firing'), countOf(notification, 'resolved')]
  const count = (number: number): string => (number > 1 ? ` (${number})` : '')
  const said = fires === 0 ? `Resolved: ${text}${count(ended)}` : `${text}${count(fires)}`
  return (notification.isTest === true ? `[TEST] ${said}` : said).slice(0, MAX_TITLE)
}

function nameOf(alert: NotifiedAlert): string {
  return isApproval(alert) ? `Approval of ${textOfLabel(alert, 'control')}` : textOfLabel(alert, 'alertname')
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

const COLOURS = { firing: '#b3261e', resolved: '#2e7d32' } as const

/** A mail: a row for each alert, with its labels and since when. `url`: where it is shown; '' if that is not known. */
export function alertsHtml(notification: Notification, url: string): string {
  const { alerts, truncated } = notification
  const shown = alerts.slice(0, MAX_LINES)
  const rows = shown.map((alert) => {
    const labels = alert.labels.map(([name, text]) => `${name}=${text}`).join(' ')
    const since = new Date(alert.firedMs).toISOString()
    return (
      `<tr><td style="padding:4px 12px 4px 0;vertical-align:top;color:${COLOURS[alert.state]}"><b>${alert.state}</b></td>` +
      `<td style="padding:4px 0">${escapedHtml(lineOf(alert).slice(0, MAX_LINE))}<br>` +
      `<small style="color:#666">${escapedHtml(labels.slice(0, MAX_LINE))} since ${since}</small></td></tr>`
    )
  })
  const more = alerts.length - shown.length + truncated
  const rest = more > 0 ? `<p>and ${more} more</p>` : ''
  const link = url === '' ? '' : `<p><a href="${escapedHtml(url)}">Open</a></p>`
  const head = `<h2 style="font-size:18px">${escapedHtml(titleOf(notification))}</h2>`
  return `<div style="font-family:sans-serif">${head}<table style="border-collapse:collapse">${rows.join('')}</table>${rest}${link}</div>`
}

function escapedHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
