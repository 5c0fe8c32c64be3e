/** One frame of any message, for tests that go through all kinds of them. */
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { writeCapabilities } from '../../../protocol/monitor/capabilities.ts'
import {
  type Message,
  writeAuth,
  writeGap,
  writeNotice,
  writeResponse,
  writeValueMessage,
} from '../../../protocol/monitor/message.ts'

export function encodeMessage(message: Message): Uint8Array {
  const writer = new XdrWriter(4)
  switch (message.kind) {
    case 'response':
      writeResponse(writer, message.seq, message.status, message.result, message.detail)
      break
    case 'caps':
      writeCapabilities(writer, message.caps)
      break
    case 'auth':
      writeAuth(writer, message.data)
      break
    case 'gap':
      writeGap(writer, message)
      break
    case 'notice':
      writeNotice(writer, message.code, message.channel, message.detail)
      break
    case 'value':
      writeValueMessage(writer, message)
      break
  }
  return writer.copy()
}
