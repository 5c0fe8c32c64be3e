/** A body of one's own, from a template: what its author wants to be sent, as JSON. */
import type { TemplateValue } from '../../../../promql/template/go-format.ts'
import { TemplateError } from '../../../../promql/template/parse.ts'
import { BodyTemplate } from '../../../../promql/template/template.ts'
import type { Label } from '../../../kit/delivered-values.ts'
import { fingerprintOf } from '../../../kit/fingerprint.ts'
import { KEY_HEADER } from '../../../kit/io/signing.ts'
import type { NotifiedAlert } from '../alert.ts'
import { generatorUrl, viewLink } from '../links.ts'
import { commonOf, isFiring, type Notification, type NotifyWire, type Told } from '../notification.ts'
import { alertsText, titleOf } from '../texts.ts'
import { endText, groupKeyOf, timeText } from './webhook.ts'

export interface BodyTold extends Told {
  /** The text of the template. */
  readonly body: string
}

/** Throws TemplateError; and so does `request`, where the template fails or gives no JSON. */
export function bodyWire({ name, externalUrl, body: text }: BodyTold): NotifyWire {
  const template = new BodyTemplate(text)
  return {
    request(notification) {
      // What is sent again has to be what was sent before: its time is that of the notification.
      const surroundings = { externalUrl, timeMs: notification.atMs }
      const body = template.execute(dataOf(notification, name, externalUrl), surroundings)
      if (!isJson(body)) throw new TemplateError('its text is no JSON: `toJson` makes JSON of a text, with its quotes')
      return {
        body: Buffer.from(body),
        headers: { 'content-type': 'application/json', [KEY_HEADER]: notification.key },
      }
    },
  }
}

/** What is wrong with it is not said: that would be a piece of the text, which may hold secrets. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Under the names that Alertmanager's templates have, and some of ours. */
function dataOf(notification: Notification, receiver: string, externalUrl: string): Map<string, TemplateValue> {
  const { groupLabels, alerts } = notification
  return new Map<string, TemplateValue>([
    ['Receiver', receiver],
    ['Status', isFiring(notification) ? 'firing' : 'resolved'],
    ['Alerts', alerts.map((alert) => dataOfAlert(alert, externalUrl))],
    ['GroupLabels', new Map(groupLabels)],
    ['CommonLabels', new Map(commonOf(alerts.map(({ labels }) => labels)))],
    ['CommonAnnotations', new Map(commonOf(alerts.map(({ annotations }) => annotations)))],
    ['ExternalURL', externalUrl],
    ['Link', viewLink(externalUrl, alerts)],
    ['GroupKey', groupKeyOf(groupLabels)],
    ['GroupFingerprint', fingerprintOf(groupLabels)],
    ['Title', titleOf(notification)],
    ['Text', alertsText(notification)],
  ])
}

function dataOfAlert(alert: NotifiedAlert, externalUrl: string): TemplateValue {
  const map = (labels: readonly Label[]): TemplateValue => new Map(labels)
  return new Map<string, TemplateValue>([
    ['Status', alert.state],
    ['Labels', map(alert.labels)],
    ['Annotations', map(alert.annotations)],
    ['StartsAt', timeText(alert.firedMs)],
    ['EndsAt', endText(alert.endedMs)],
    ['GeneratorURL', generatorUrl(externalUrl, alert)],
    ['Fingerprint', alert.fingerprint],
    ['Value', alert.value],
  ])
}
