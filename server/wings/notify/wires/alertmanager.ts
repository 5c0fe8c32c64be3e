/**
 * POST /api/v2/alerts of an Alertmanager. What fires is said to end a few minutes from now, and said again before that: so an
 * Alertmanager that hears nothing any more takes it as ended, as it does with Prometheus.
 */
import { KEY_HEADER } from '../../../kit/io/signing.ts'
import { generatorUrl } from '../links.ts'
import type { NotifyWire, Told } from '../notification.ts'
import { timeText } from './webhook.ts'

/** Four times the interval at which it is told again, as Prometheus has it. */
const VALID_MS = 240_000

export function alertmanagerWire({ externalUrl }: Told): NotifyWire {
  return {
    request({ key, alerts }, nowMs) {
      const texts = alerts.map((alert) => ({
        labels: Object.fromEntries(alert.labels),
        annotations: Object.fromEntries(alert.annotations),
        startsAt: timeText(alert.firedMs),
        endsAt: timeText(alert.endedMs === 0 ? nowMs + VALID_MS : alert.endedMs),
        ...(externalUrl !== '' && { generatorURL: generatorUrl(externalUrl, alert) }),
      }))
      return {
        body: Buffer.from(JSON.stringify(texts)),
        headers: { 'content-type': 'application/json', [KEY_HEADER]: key },
      }
    },
  }
}
