/** `auth password`, `layer deflate`, `extension gap`: the words of PRODUCER_CAPS [MON 3.2]. */
import type { Message } from './speaker.ts'
import { messages, types } from './words.ts'
import { inside, opaqueEnd, valueEnd } from './xdr.ts'

/** undefined: another message, or one that is not whole. */
export function offeredIn(message: Message): ReadonlySet<string> | undefined {
  try {
    const words = 'frame' in message ? ofFrame(message.frame) : ofJson(message.json)
    return words && new Set(words)
  } catch {
    // What is wrong with it is said where it is compared.
    return undefined
  }
}

function ofFrame(frame: Buffer): string[] | undefined {
  if (frame.readUInt32BE(4) !== messages.PRODUCER_CAPS) return undefined
  const found: string[] = []
  let at = 20
  for (let left = frame.readUInt32BE(16); left > 0; left--) {
    const name = inside(frame, at).toString('utf8')
    const typeAt = opaqueEnd(frame, at)
    const type = frame.readUInt32BE(typeAt)
    const end = valueEnd(frame, typeAt + 4, type)
    if (type === types.STRING) found.push(`${name} ${inside(frame, typeAt + 4).toString('utf8')}`)
    at = end
  }
  return found
}

function ofJson(json: unknown): string[] | undefined {
  const lists = json as Record<string, unknown>
  if (lists['type'] !== 'caps') return undefined
  return ['auth', 'layer', 'extension'].flatMap((name) => {
    const words = lists[name]
    return Array.isArray(words) ? words.map((word) => `${name} ${String(word)}`) : []
  })
}
