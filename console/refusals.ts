/** Why something cannot be read or done, as a sentence for people: commands and statuses of the protocol are not in it. */
import { StatusError } from '../client/browser.ts'

export interface Refusal {
  readonly reason: string
  /** Whether the server refuses it; if not, something has failed. */
  readonly isByServer: boolean
}

/** In place of the words of the server, which are for those who write consumers. */
const SENTENCES: Readonly<Record<string, string>> = {
  NO_SUCH_METRIC: 'There is no such metric, or you may not read it.',
  NO_SUCH_CONTROL: 'There is no such control, or you may not run it.',
  NO_SUCH_CHANNEL: 'There is no such channel, or you may not see it.',
  NO_SUCH_ID: 'The server does not know this any more: load the page again.',
  INTERNAL: 'The server has failed here: its log says why.',
}

export function refusalOf(error: unknown): Refusal {
  return { reason: reasonOf(error), isByServer: error instanceof StatusError }
}

export function reasonOf(error: unknown): string {
  if (error instanceof StatusError) {
    return SENTENCES[error.status] ?? (sentence(error.detail) || 'The server refuses it, and does not say why.')
  }
  return sentence(error instanceof Error ? error.message : String(error))
}

export function sentence(text: string): string {
  return text === '' ? '' : `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}
