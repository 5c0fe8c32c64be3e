/** ntfy: a message on a phone. Its title names the alerts, its priority is that of the worst severity. */
import { KEY_HEADER } from '../../../kit/io/signing.ts'
import { type NotifiedAlert, textOfLabel } from '../alert.ts'
import { countOf, isFiring, type NotifyWire, type Told } from '../notification.ts'

/** The priorities of ntfy go from 1 to 5; 3 is the usual one. */
const PRIORITIES: Readonly<Record<string, number>> = {
  critical: 5,
  page: 5,
  emergency: 5,
  error: 4,
  warning: 4,
  info: 2,
  none: 1,
}
const USUAL = 3
/** ntfy makes a file of longer messages. */
const MAX_LINES = 10
const MAX_LENGTH = 3_500

/** `href`: the URL of the topic. */
export function ntfyWire(href: string, { externalUrl }: Told): NotifyWire & { readonly href: string } {
  const url = new URL(href)
  const topic = decodeURIComponent(url.pathname.slice(url.pathname.lastIndexOf('/') + 1))
  url.pathname = url.pathname.slice(0, url.pathname.lastIndexOf('/') + 1)
  return {
    href: url.href,
    request(notification) {
      const { key, alerts, isTest = false } = notification
      const firing = isFiring(notification)
      const lines = alerts.slice(0, MAX_LINES).map(lineOf)
      const more = alerts.length - lines.length + notification.truncated
      const text = [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
      const message = {
        topic,
        title: `${isTest ? '[TEST] ' : ''}${titleOf(notification)}`,
        message: text.slice(0, MAX_LENGTH),
        priority: firing ? Math.max(...alerts.map(priorityOf)) : 2,
        tags: [firing ? 'rotating_light' : 'white_check_mark'],
        ...(externalUrl !== '' && {
          click: externalUrl,
          actions: [{ action: 'view', label: 'Open', url: externalUrl, clear: false }],
        }),
      }
      return {
        body: Buffer.from(JSON.stringify(message)),
        headers: { 'content-type': 'application/json', [KEY_HEADER]: key },
      }
    },
  }
}

function titleOf(notification: Parameters<NotifyWire['request']>[0]): string {
  const names = [...new Set(notification.alerts.map((alert) => textOfLabel(alert, 'alertname')))].slice(0, 3).join(', ')
  const [fires, ended] = [countOf(notification, 'firing'), countOf(notification, 'resolved')]
  if (fires === 0) return `Resolved: ${names}${ended > 1 ? ` (${ended})` : ''}`
  return `${names}${fires > 1 ? ` (${fires})` : ''}`
}

function lineOf(alert: NotifiedAlert): string {
  const annotation = (wanted: string): string => alert.annotations.find(([name]) => name === wanted)?.[1] ?? ''
  const said = annotation('summary') || annotation('description')
  const labels = alert.labels.filter(([name]) => name !== 'alertname').map(([name, text]) => `${name}=${text}`)
  const text = said === '' ? [textOfLabel(alert, 'alertname'), ...labels].join(' ') : said
  return alert.state === 'resolved' ? `resolved: ${text}` : text
}

function priorityOf(alert: NotifiedAlert): number {
  return PRIORITIES[textOfLabel(alert, 'severity').toLowerCase()] ?? USUAL
}
