/**
 * The transcripts of docs/protocol/monitoring.md: each is decoded and compared with its words, field by field, and then played
 * to a server. What the consumer sends is sent as it stands on the page, with the bytes of this session in place of a name in
 * angle brackets; what the producer answers has to be what the page shows.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { constants, inflateRawSync } from 'node:zlib'
import { hashSync } from 'bcryptjs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeVerifiers } from '../../auth/verifiers.ts'
import { TlsFiles } from '../../server/edge/tls/files.ts'
import { defaultConfig } from '../../server/start/config.ts'
import { commandVectors, fromHex, messageVectors } from '../protocol/monitor/vectors.ts'
import { Callee } from '../server/edge/outbound/callee.ts'
import { command, frame as framed, str, type } from '../support/bytes.ts'
import { Authority, OperatorDirectory } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { connectSecurable, deflated, secure, wrapped } from '../support/layers.ts'
import { TestProducer } from '../support/producer.ts'
import { RawPeer } from '../support/raw-peer.ts'
import { decoded } from '../support/records.ts'
import { RfcScram } from '../support/rfc-scram.ts'
import { ROOT, readPage } from './page.ts'
import { bytesOf, described, type Frame, type Line, transcript, transcriptNames } from './transcript.ts'

const PATH = 'docs/protocol/monitoring.md'
const page = readPage(PATH, readFileSync(join(ROOT, PATH), 'utf8'))
const frames = (name: string): Frame[] => transcript(page, name)

/** The secret of the channel that is dialled, and what the producer keeps of the token. */
const SECRET = '16 bytes or more'
const TOKEN_SHA256 = 'dd5322fe2f8d347e1d8fd1bdc152b84f23c378a3ef7f1d2191e29149ce914468'
/** The exporter of the page's example of scram-sha-256-plus: 00 01 02 ... 1f. */
const EXPORTER = Uint8Array.from({ length: 32 }, (_, index) => index)

/** Whether what the page says is what the decoder says, apart from names in angle brackets. */
function says(shown: string, found: string): boolean {
  const pieces = shown.split(/<[a-z ]+>/).map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${pieces.join('.+')}$`).test(found)
}

const nameIn = (shown: string): string | undefined => /<([a-z ]+)>/.exec(shown)?.[1]

describe('the transcripts of the page', () => {
  const names = transcriptNames(page)

  it.each(names.filter((name) => name !== 'deflated'))('%s decodes to what stands beside it', (name) => {
    for (const frame of frames(name)) {
      const decoded = described(frame.from, bytesOf(frame))
      expect(decoded.map(({ hex }) => hex)).toEqual(frame.lines.map(({ hex }) => hex))
      for (const [index, line] of frame.lines.entries()) {
        const found = decoded[index]?.says ?? ''
        expect(says(line.says, found) ? line.says : found).toBe(line.says)
      }
    }
  })

  it.each(names)('%s has one value for each name in angle brackets', (name) => {
    const known = new Map<string, string>()
    for (const { hex, says } of frames(name).flatMap(({ lines }) => lines)) {
      const placeholder = nameIn(says)
      if (placeholder === undefined) continue
      expect(known.get(placeholder) ?? hex, placeholder).toBe(hex)
      known.set(placeholder, hex)
    }
  })

  it('deflated inflates to inflated, in both directions', () => {
    for (const from of ['consumer', 'producer'] as const) {
      const bytes = (name: string) =>
        Buffer.concat(frames(name).flatMap((one) => (one.from === from ? [bytesOf(one)] : [])))
      expect(inflateRawSync(bytes('deflated'), { finishFlush: constants.Z_SYNC_FLUSH })).toEqual(bytes('inflated'))
    }
  })

  it.each([
    ['scram', { username: 'user', password: 'pencil' }],
    ['scram-plus', { username: 'user', password: 'pencil', exporter: EXPORTER }],
    ['dialled', { username: 'tc', password: SECRET }],
  ])('%s is right by the arithmetic of RFC 5802', (name, options) => {
    const [first, challenge, final, proof] = frames(name).flatMap((frame) => textOf(frame) ?? [])
    const scram = new RfcScram({ ...options, nonce: 'rOprNGfwEbeRWgbNEkqO' })
    expect(first).toBe(scram.clientFirst().toString())
    expect(final).toBe(scram.clientFinal(Buffer.from(challenge ?? '')).toString())
    expect(scram.isProvenBy(Buffer.from(proof ?? ''))).toBe(true)
  })

  it('are beside examples that are vectors, byte for byte', () => {
    const plain = page.blocks.filter(({ section, words }) => section.startsWith('161') && words.length === 0)
    const shown = plain.flatMap(({ lines }) => lines.filter((line) => /^ {2}[0-9a-f ]+$/.test(line)))
    const known = [...commandVectors(), ...messageVectors()].map(({ frame }) => Buffer.from(frame).toString('hex'))
    expect(shown.length).toBeGreaterThanOrEqual(12)
    for (const line of shown) expect(known).toContain(Buffer.from(fromHex(line.trim())).toString('hex'))
  })
})

/** The text in an AUTH, of either side; undefined if the frame has none. */
function textOf(frame: Frame): string | undefined {
  const at = frame.lines.findIndex(({ says }) => says.startsWith('data, '))
  return at < 0 ? undefined : frame.lines.slice(at + 1).reduce((text, line) => text + line.says, '')
}

/** What names in angle brackets stand for anew wherever the producer sends it. */
const NEW_EACH_TIME = ['own channel', 'time', 'took']

/** Plays transcripts on a connection; names keep their values over connections. */
class Player {
  readonly #peer: RawPeer
  readonly #names: Map<string, string>
  readonly #scram: RfcScram | undefined
  /** The client-final message for this session. */
  #final: Uint8Array | undefined

  constructor(peer: RawPeer, names = new Map<string, string>(), scram?: RfcScram) {
    this.#peer = peer
    this.#names = names
    this.#scram = scram
  }

  async play(shown: readonly Frame[]): Promise<void> {
    for (const frame of shown) {
      if (frame.from === 'consumer') this.#peer.send(this.#sent(frame))
      else await this.#expect(frame)
    }
  }

  async expectClosed(): Promise<void> {
    expect(await this.#peer.next()).toEqual({ kind: 'closed' })
  }

  #sent(frame: Frame): Uint8Array {
    if (this.#scram !== undefined && textOf(frame)?.startsWith('c=') && this.#final !== undefined) {
      return command.auth(bytesOf(frame).readUInt32BE(8), '', this.#final)
    }
    const [, ...rest] = frame.lines
    const words = rest.map(({ hex, says }) => this.#names.get(nameIn(says) ?? '') ?? hex)
    const head = (frame.lines[0] as Line).hex.slice(8)
    return framed(Buffer.from(head + words.join(''), 'hex'))
  }

  async #expect(shown: Frame): Promise<void> {
    const message = await this.#peer.next()
    if (message.kind === 'closed') throw new Error(`the connection ended instead of ${shown.lines[0]?.says}`)
    if (message.kind === 'auth' && this.#scram !== undefined) {
      this.#step(this.#scram, message.data)
      return
    }
    const found = described('producer', framed(message.bytes))
    if (message.kind === 'caps') this.#expectOffered(shown, found)
    else this.#compare(shown.lines, found)
  }

  /** Server-first, or server-final. */
  #step(scram: RfcScram, data: Buffer): void {
    if (this.#final === undefined) this.#final = scram.clientFinal(data)
    else expect(scram.isProvenBy(data)).toBe(true)
  }

  /** A producer may offer more than the page shows, never less. */
  #expectOffered(shown: Frame, found: readonly Line[]): void {
    for (const { says: entry } of shown.lines.slice(2)) {
      expect(found.some((line) => says(entry, line.says)) ? entry : found).toBe(entry)
    }
  }

  #compare(shown: readonly Line[], found: readonly Line[]): void {
    const expected = shown.map(({ hex, says }, index) => {
      const name = nameIn(says)
      const { hex: actual = '', says: said = '' } = found[index] ?? {}
      if (name === undefined) return { hex, says }
      if (NEW_EACH_TIME.includes(name) || !this.#names.has(name)) this.#names.set(name, actual)
      return { hex: this.#names.get(name), says: said }
    })
    expect(found).toEqual(expected)
  }
}

describe('a server plays the transcript', () => {
  const directory = new OperatorDirectory()
  let producer: TestProducer
  let phone: Callee
  let authority: Authority
  let tls: TlsFiles
  beforeAll(async () => {
    phone = await Callee.listen()
    const listen = { tcp: { host: '127.0.0.1', port: 0 } }
    const dial = { allow: [`tcp://127.0.0.1:${phone.port}`] }
    // Nothing is recorded, so that nothing but the examples is on the wire.
    const history = { ...defaultConfig().history, keepMs: 86_400_000, metrics: ['none.*'] }
    producer = await TestProducer.start({ config: { listen, dial, history } })
    await producer.addUser('root', { role: 'admin' })
    await producer.addUser('user', { password: 'pencil' })
    const root = await producer.seat('root')
    const text = (name: string, value: string) => [name, type.string, str(value)] as const
    // The password of the examples is shorter than one that may be set, but bytes that are easy to read are worth more there.
    const { accounts } = producer.server.parts.producer
    const verifiers = await makeVerifiers('s3', { hash: async (password) => hashSync(password, 4) }, 4096)
    accounts.add({ tenant: 'default', name: 'tc', role: 'admin', loopbackOnly: false, ...verifiers })
    expect(await root.execute('token.add', text('user', 'tc'), text('hash', TOKEN_SHA256))).toMatchObject({
      outcome: 'ok',
    })
    await eventually(async () => {
      producer.clock.advance(1_000)
      await producer.settle()
      const sensors = decoded(await root.query('producer.sensors')) as unknown as { name: string; state: string }[]
      const ours = sensors.filter(({ name }) => name.startsWith('history/'))
      expect(ours.map(({ state }) => state)).toEqual(['recording'])
    })
    authority = await Authority.make()
    const clientCa = directory.write('client-ca.pem', authority.cert)
    const files = directory.server(await authority.server())
    tls = TlsFiles.open({ ...files, clientCa, clientRevoked: undefined }, producer.clock) as TlsFiles
  })
  afterAll(async () => {
    await phone.close()
    await producer.stop()
    directory.remove()
  })

  /** Over TCP, as the page says. */
  async function overTcp(): Promise<RawPeer> {
    const socket = connect(producer.server.tcp?.port ?? 0, '127.0.0.1')
    await once(socket, 'connect')
    return new RawPeer(socket)
  }

  async function loggedIn(names?: Map<string, string>): Promise<{ peer: RawPeer; player: Player }> {
    const peer = await overTcp()
    const player = new Player(peer, names)
    await player.play(frames('login'))
    return { peer, player }
  }

  it('login, session; and again, after the connection broke', async () => {
    const names = new Map<string, string>()
    const { peer, player } = await loggedIn(names)
    await player.play(frames('session'))
    peer.destroy()
    const { player: second } = await loggedIn(names)
    await second.play(frames('again'))
    await second.expectClosed()
  })

  it('login, with everything of the consumer before the producer has said a word', async () => {
    const socket = connect(producer.server.tcp?.port ?? 0, '127.0.0.1')
    const shown = frames('login')
    const sent = shown.flatMap((frame) => (frame.from === 'consumer' ? [bytesOf(frame)] : []))
    socket.write(Buffer.concat([...sent, command.collect(2, 'host.load.one')]))
    const peer = new RawPeer(socket)
    await new Player(peer).play(shown.filter(({ from }) => from === 'producer'))
    expect(await peer.response(2)).toMatchObject({ status: 0 })
  })

  it('execute', async () => {
    const { player } = await loggedIn()
    await player.play(frames('execute'))
  })

  it('query', async () => {
    const { player } = await loggedIn()
    await player.play(frames('query'))
  })

  it('scram', async () => {
    const peer = await overTcp()
    await peer.until('caps')
    const scram = new RfcScram({ username: 'user', password: 'pencil', nonce: 'rOprNGfwEbeRWgbNEkqO' })
    await new Player(peer, new Map(), scram).play(frames('scram'))
  })

  it('token', async () => {
    const peer = await overTcp()
    await peer.until('caps')
    await new Player(peer).play(frames('token'))
  })

  it('tls, with scram-plus and certificate in it', async () => {
    const certificate = await authority.client('user')
    for (const method of ['scram-plus', 'certificate']) {
      const peer = new RawPeer(connectSecurable(producer, tls))
      await peer.until('caps')
      const [wrap, response, ...more] = frames('tls').map(bytesOf)
      expect(more).toEqual([])
      expect(wrap).toEqual(Buffer.from(command.wrap(1, 'tls')))
      expect(response?.toString('hex')).toBe('00000010ffffffff0000000100000000fffffffe')
      const socket = await secure(await wrapped(peer, 'tls', 1), { ca: authority.cert, ...certificate })
      const safe = new RawPeer(socket)
      await safe.until('caps')
      const exporter = socket.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', Buffer.alloc(0))
      const options = { username: 'user', password: 'pencil', nonce: 'rOprNGfwEbeRWgbNEkqO', exporter }
      await new Player(safe, new Map(), new RfcScram(options)).play(frames(method))
    }
  })

  it('deflate, deflated', async () => {
    const { peer } = await loggedIn()
    const [wrap, response, ...more] = frames('deflate').map(bytesOf)
    expect(more).toEqual([])
    expect(wrap).toEqual(Buffer.from(command.wrap(2, 'deflate')))
    expect(response?.toString('hex')).toBe('00000010ffffffff0000000200000000fffffffe')
    const stream = await wrapped(peer, 'deflate', 2)
    const inside = new RawPeer(deflated(stream))
    const [caps, nop, ok] = frames('inflated') as [Frame, Frame, Frame]
    await new Player(inside).play([caps])
    for (const frame of frames('deflated')) if (frame.from === 'consumer') stream.write(bytesOf(frame))
    expect(nop.from).toBe('consumer')
    await new Player(inside).play([ok])
  })

  it('define, and dialled on the connection that the producer makes', async () => {
    const url = Buffer.from(str(`tcp://127.0.0.1:${phone.port}`)).toString('hex')
    const names = new Map([['consumer', url]])
    const { player } = await loggedIn(names)
    await player.play(frames('define'))
    const scram = new RfcScram({ username: 'tc', password: SECRET, nonce: 'rOprNGfwEbeRWgbNEkqO' })
    await new Player(await phone.call(), names, scram).play(frames('dialled'))
  })
})
