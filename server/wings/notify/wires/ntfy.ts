/** ntfy: a message on a phone. Its title names the alerts, its priority is that of the worst severity that fires. */
import { KEY_HEADER } from '../../../kit/io/signing.ts'
import { type NotifiedAlert, textOfLabel } from '../alert.ts'
import { acknowledgeUrl, viewLink } from '../links.ts'
import { countOf, isFiring, type Notification, type NotifyWire, type Told } from '../notification.ts'
import { alertsText, titleOf } from '../texts.ts'

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

/** `href`: the URL of the topic. `tokenOf`: what the button that acknowledges sends; empty: there is no button. */
export function ntfyWire(
  href: string,
  { externalUrl }: Told,
  tokenOf: (notification: Notification) => string,
): NotifyWire & { readonly href: string } {
  const url = new URL(href)
  const topic = decodeURIComponent(url.pathname.slice(url.pathname.lastIndexOf('/') + 1))
  url.pathname = url.pathname.slice(0, url.pathname.lastIndexOf('/') + 1)
  return {
    href: url.href,
    request(notification) {
      const { key, alerts } = notification
      const firing = isFiring(notification)
      const link = viewLink(externalUrl, alerts)
      const message = {
        topic,
        title: titleOf(notification),
        message: alertsText(notification),
        priority: firing ? Math.max(...alerts.filter(({ state }) => state === 'firing').map(priorityOf)) : 2,
        tags: [firing ? 'rotating_light' : 'white_check_mark'],
        ...(externalUrl !== '' && {
          click: link,
          actions: [
            ...buttonsOf(externalUrl, notification, tokenOf(notification)),
            { action: 'view', label: 'Open', url: link, clear: false },
          ],
        }),
      }
      return {
        body: Buffer.from(JSON.stringify(message)),
        headers: { 'content-type': 'application/json', [KEY_HEADER]: key },
      }
    },
  }
}

/** The token is in the body: addresses are in the logs of proxies. */
function buttonsOf(externalUrl: string, notification: Notification, token: string): readonly object[] {
  if (token === '') return []
  const count = countOf(notification, 'firing')
  const label = count === 1 ? 'Acknowledge' : `Acknowledge all ${count}`
  return [{ action: 'http', label, method: 'POST', url: acknowledgeUrl(externalUrl), body: token, clear: true }]
}

function priorityOf(alert: NotifiedAlert): number {
  return PRIORITIES[textOfLabel(alert, 'severity').toLowerCase()] ?? USUAL
}
