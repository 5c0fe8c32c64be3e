/** Incoming webhooks of Slack, which Mattermost, Rocket.Chat and Discord (with `/slack` at the end of the URL) take as well. */
import { KEY_HEADER } from '../../../kit/io/signing.ts'
import type { NotifyWire, Told } from '../notification.ts'
import { linesOf, titleOf } from '../texts.ts'

export function slackWire({ externalUrl }: Told): NotifyWire {
  return {
    request(notification) {
      const { key } = notification
      const link = externalUrl === '' ? [] : [`<${externalUrl}|Open>`]
      const text = [`*${escaped(titleOf(notification))}*`, ...linesOf(notification).map(escaped), ...link].join('\n')
      return {
        body: Buffer.from(JSON.stringify({ text })),
        headers: { 'content-type': 'application/json', [KEY_HEADER]: key },
      }
    },
  }
}

/** Of the characters that Slack takes as its own. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
