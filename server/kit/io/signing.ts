/** Requests to receivers of JSON are signed as Standard Webhooks demands, with secrets that are read for each of them. */
import { webhookHeaders, webhookKey } from '../../../protocol/webhook/signature.ts'
import type { Clock } from '../running.ts'
import { contentsOf, type ReadContents } from './address.ts'
import type { Receiver } from './post.ts'

/** The one in use, and those that are coming or going. */
const MAX_SECRETS = 4
/** The header of a request by which a receiver knows what it has already. */
export const KEY_HEADER = 'idempotency-key'

const MS_PER_SECOND = 1_000

/** Signs what goes to a receiver. Without a file requests have an id and a time, and no signature. */
export function signing(
  receiver: Receiver,
  secretFile: string | undefined,
  clock: Pick<Clock, 'wallMs'>,
  read: ReadContents = contentsOf,
): Receiver {
  return {
    async post(body, headers) {
      const keys = secretFile === undefined ? [] : await signingKeys(secretFile, read)
      const attempt = {
        id: headers[KEY_HEADER] ?? '',
        timestampS: Math.floor(clock.wallMs() / MS_PER_SECOND),
        body,
      }
      return receiver.post(body, { ...headers, ...(await webhookHeaders(attempt, keys)) })
    },
    close: () => receiver.close(),
  }
}

/** One secret stands in each line. Errors are for people, and hold no secret. */
export async function signingKeys(path: string, read: ReadContents): Promise<Uint8Array[]> {
  const lines = (await read(path)).split(/\r?\n/).filter((line) => line !== '')
  const keys = lines.map(webhookKey).filter((key) => key !== undefined)
  if (lines.length === 0 || lines.length > MAX_SECRETS || keys.length < lines.length) {
    throw new Error(
      `${path} has to hold 1 to ${MAX_SECRETS} secrets, one a line: whsec_ and then 24 to 64 bytes as base64`,
    )
  }
  return keys
}
