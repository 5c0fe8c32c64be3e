/** The JSON that the webhooks of Alertmanager send, version 4: every receiver that was made for these takes it. */
import type { Label } from '../../../kit/delivered-values.ts'
import { KEY_HEADER } from '../../../kit/io/signing.ts'
import type { NotifiedAlert } from '../alert.ts'
import { generatorUrl } from '../links.ts'
import { commonOf, isFiring, type NotifyWire, type Told } from '../notification.ts'

const VERSION = '4'
const NOT_ENDED = '0001-01-01T00:00:00Z'

export function webhookWire({ name, externalUrl }: Told): NotifyWire {
  return {
    request(notification) {
      const { key, groupLabels, alerts, truncated } = notification
      const texts = {
        version: VERSION,
        groupKey: groupKeyOf(groupLabels),
        truncatedAlerts: truncated,
        status: isFiring(notification) ? 'firing' : 'resolved',
        receiver: name,
        groupLabels: Object.fromEntries(groupLabels),
        commonLabels: Object.fromEntries(commonOf(alerts.map(({ labels }) => labels))),
        commonAnnotations: Object.fromEntries(commonOf(alerts.map(({ annotations }) => annotations))),
        externalURL: externalUrl,
        alerts: alerts.map((alert) => webhookAlert(alert, externalUrl)),
      }
      return {
        body: Buffer.from(JSON.stringify(texts)),
        headers: { 'content-type': 'application/json', [KEY_HEADER]: key },
      }
    },
  }
}

function webhookAlert(alert: NotifiedAlert, externalUrl: string) {
  const { state, labels, annotations, firedMs, endedMs, fingerprint } = alert
  return {
    status: state,
    labels: Object.fromEntries(labels),
    annotations: Object.fromEntries(annotations),
    startsAt: timeText(firedMs),
    endsAt: endText(endedMs),
    generatorURL: generatorUrl(externalUrl, alert),
    fingerprint,
  }
}

/** As Alertmanager writes it for a route without matchers. */
export function groupKeyOf(labels: readonly Label[]): string {
  return `{}:{${labels.map(([name, text]) => `${name}=${JSON.stringify(text)}`).join(', ')}}`
}

export function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

/** 0: it has not ended. */
export function endText(endedMs: number): string {
  return endedMs === 0 ? NOT_ENDED : timeText(endedMs)
}
