/** `monitoring.json` [MON 13]: the same scripts, their frames said and read as JSON. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import { WebSocket } from 'ws'
import { bigToJson, commandToJson } from './json-command.ts'
import { matchJson } from './json-match.ts'
import { type Bindings, Mismatch } from './match.ts'
import { resolve, type Variable, type Variables } from './pattern.ts'
import type { Expectation } from './script.ts'
import { exporterOf, Inbox, type Message, type Speaker } from './speaker.ts'
import { fillText, matchText } from './text-match.ts'
import { noticeCodes } from './words.ts'
import { inside, string, uint64 } from './xdr.ts'

const NO_LAYERS = 'JSON has no layers: the script needs "only: xdr"'

/** `tls`: for `wss://`. */
export async function openJson(url: string, patienceMs: number, tls: ConnectionOptions): Promise<Speaker> {
  const socket = new WebSocket(url, ['monitoring.json'], tls)
  let carrier: Socket | undefined
  socket.once('upgrade', (answer) => {
    carrier = answer.socket
  })
  const speaker = new JsonSpeaker(socket, () => carrier, patienceMs)
  // Not before the speaker listens: the first message may come together with the answer to the upgrade.
  await once(socket, 'open')
  return speaker
}

/** A producer that has connected. */
export function speakJson(socket: WebSocket, carrier: Socket, patienceMs: number): Speaker {
  return new JsonSpeaker(socket, () => carrier, patienceMs)
}

class JsonSpeaker implements Speaker {
  readonly #socket: WebSocket
  readonly #carrier: () => Socket | undefined
  readonly #inbox: Inbox

  constructor(socket: WebSocket, carrier: () => Socket | undefined, patienceMs: number) {
    this.#socket = socket
    this.#carrier = carrier
    this.#inbox = new Inbox(patienceMs)
    socket.on('message', (data: Buffer, isBinary: boolean) => this.#inbox.push({ json: read(data, isBinary) }))
    socket.on('error', () => this.#inbox.close())
    socket.on('close', (code) => this.#inbox.close(code))
  }

  send(bytes: Buffer): void {
    this.#socket.send(JSON.stringify(commandToJson(bytes)))
  }

  sendText(text: string): void {
    this.#socket.send(text)
  }

  sendBelow(): void {
    throw new Error(NO_LAYERS)
  }

  addTls(): Promise<void> {
    return Promise.reject(new Error(NO_LAYERS))
  }

  addDeflate(): void {
    throw new Error(NO_LAYERS)
  }

  exporter(): Buffer {
    return exporterOf(this.#carrier())
  }

  next(): ReturnType<Speaker['next']> {
    return this.#inbox.next()
  }

  match(expectation: Expectation, message: Message, variables: Variables): Bindings {
    if (!('json' in message)) throw new Mismatch('no JSON')
    if ('parts' in expectation) return matchJson(resolve(expectation.parts, variables), message.json, variables)
    const taken = matchText(expectation.json, message.json, keptOf(variables))
    return new Map([...taken].map(([name, json]) => [name, variableOf(json)]))
  }

  mayBePassedOver(message: Message): boolean {
    return typeOf(message) === 'caps' || this.noticeOf(message) === 1
  }

  noticeOf(message: Message): number | undefined {
    if (typeOf(message) !== 'notice') return undefined
    const { code } = (message as { json: { code: unknown } }).json
    const [number = code] = Object.entries(noticeCodes).find(([, word]) => word === code) ?? []
    return Number(number)
  }

  cut(): void {
    this.#socket.terminate()
  }

  async end(): Promise<void> {
    this.#socket.close()
    await this.#inbox.untilClosed()
  }
}

function read(data: Buffer, isBinary: boolean): unknown {
  if (isBinary) return `a binary message: ${data.toString('hex')}`
  try {
    return JSON.parse(data.toString('utf8')) as unknown
  } catch {
    return `text that is no JSON: ${data.toString('utf8')}`
  }
}

function typeOf(message: Message): unknown {
  const json = 'json' in message ? message.json : undefined
  return typeof json === 'object' && json !== null && 'type' in json ? json.type : undefined
}

/** The text of a script with what was captured in place of its names. */
export function textWith(text: string, variables: Variables): string {
  return fillText(text, keptOf(variables))
}

function keptOf(variables: Variables): Map<string, unknown> {
  return new Map([...variables].map(([name, variable]) => [name, jsonOf(variable)]))
}

function jsonOf({ kind, bytes }: Variable): unknown {
  switch (kind) {
    case 'str':
      return inside(bytes).toString('utf8')
    case 'opaque':
      return inside(bytes).toString('base64')
    case 'u64':
      return bigToJson(bytes.readBigUInt64BE(0))
    case 'f64':
      return bytes.readDoubleBE(0)
    default:
      return bytes.length === 4 ? bytes.readUInt32BE(0) : undefined
  }
}

function variableOf(json: unknown): Variable {
  if (typeof json === 'string') return { kind: 'str', bytes: string(json) }
  if (typeof json === 'number' && Number.isSafeInteger(json) && json >= 0) {
    return { kind: 'u64', bytes: uint64(BigInt(json)) }
  }
  throw new Error(`only whole numbers and strings can be kept, not ${JSON.stringify(json)}`)
}
