/**
 * The codecs by themselves, one thread, nothing around them: how many values, commands or packets a second each takes. What
 * a whole server does is bounded by the slowest of them on its way.
 */
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { decodePacket } from '../../protocol/gmetric/decode.ts'
import { encodeText } from '../../protocol/gmetric/encode.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { LabelledReader } from '../../protocol/monitor/labelled.ts'
import { readMessage, writeResponse } from '../../protocol/monitor/message.ts'
import { SmonDecoder, type SmonSink } from '../../protocol/smon/decode.ts'
import { SmonEncoder } from '../../protocol/smon/encode.ts'
import { Block, writeFrame } from '../../server/kernel/channels/block.ts'
import { type Chunk, MAX_BLOCK_BYTES, Pool } from '../../server/kernel/channels/pool.ts'
import { framePrefix } from '../../server/kernel/metrics/instance.ts'
import { XdrCommandSource } from '../../server/kernel/sessions/command-source.ts'
import { command, f64, join, str, u32 } from '../support/bytes.ts'
import { bytesOf, definitions, roundsOf, SERIES } from './durable-stream.ts'

const PER_PASS = 10_000
const WARM_UP_MS = 300
const MEASURED_MS = 1_000
const SLICE_BYTES = 16 << 10
const GMETRIC_DOUBLE = 135
const FIRST_ID = 2 ** 40

/** Does `PER_PASS` of something. */
type Pass = () => void

export async function benchCodec(): Promise<object> {
  const passes: Readonly<Record<string, Pass>> = {
    valueAppend: valueAppend(),
    valueRead: valueRead(new XdrReader()),
    valueReadAgain: valueRead(new LabelledReader()),
    commitInPlace: commits((intake) => intake.plainCommit),
    commitByTable: commits((intake) => intake.read()['transaction'] as number),
    responseEncode: responseEncode(),
    smonDecode: smonDecode(),
    smonEncode: smonEncode(),
    gmetricDecode: gmetricDecode(),
    gmetricEncode: gmetricEncode(),
  }
  return Object.fromEntries(Object.entries(passes).map(([name, pass]) => [`${name}PerSecond`, perSecond(pass)]))
}

function perSecond(pass: Pass): number {
  run(pass, WARM_UP_MS)
  const { passes, ms } = run(pass, MEASURED_MS)
  return Math.round((passes * PER_PASS * 1000) / ms)
}

function run(pass: Pass, leastMs: number): { passes: number; ms: number } {
  const start = performance.now()
  for (let passes = 1; ; passes++) {
    pass()
    const ms = performance.now() - start
    if (ms >= leastMs) return { passes, ms }
  }
}

/** VALUE frames of a pattern into blocks, as a queue appends them. */
function valueAppend(): Pass {
  const pool = new Pool()
  const labels = { name: 'smon.reading.0001', source: '127.0.0.1:40000' }
  const head = framePrefix(7, labels, new Set(['name', 'source'] as const))
  const tail = new XdrWriter().uint32(BasicType.UINT64).uint53(1_000_000).copy()
  const bytes = head.length + tail.length
  let id = 1
  let block = new Block(id, 0, id)
  return () => {
    for (let i = 0; i < PER_PASS; i++, id++) {
      if (!block.reserve(bytes, MAX_BLOCK_BYTES, pool)) {
        block.dropBytes()
        block = new Block(id, 0, id)
        block.reserve(bytes, MAX_BLOCK_BYTES, pool)
      }
      block.extend(1, writeFrame(block.chunk as Chunk, block.length, head, tail, 1_700_000_000_000_000), id)
    }
  }
}

/** VALUEs of a pattern over SERIES series in turn, read as a consumer does; a LabelledReader keeps their labels. */
function valueRead(reader: XdrReader): Pass {
  const tail = new XdrWriter().uint32(BasicType.UINT64).uint53(1_000_000).copy()
  const payloads = Array.from({ length: SERIES }, (_, index) => {
    const labels = { name: `smon.reading.${String(index).padStart(4, '0')}`, source: '127.0.0.1:40000' }
    return join(framePrefix(7, labels, new Set(['name', 'source'] as const)).subarray(4), tail)
  })
  return () => {
    for (let i = 0; i < PER_PASS; i++) {
      const message = readMessage(reader.reset(payloads[i % SERIES] as Uint8Array))
      if (message.kind !== 'value') throw new Error(`a ${message.kind} was read`)
    }
  }
}

/** Plain COMMITs as they stand in one read. `idOf`: one way to their transaction ids. */
function commits(idOf: (source: XdrCommandSource) => number): Pass {
  const frames = join(...Array.from({ length: PER_PASS }, (_, index) => command.commit(index, FIRST_ID + index)))
  const intake = new XdrCommandSource()
  return () => {
    let last = 0
    intake.push(frames)
    while (intake.next()) last = Math.max(last, idOf(intake))
    intake.settle()
    if (last !== FIRST_ID + PER_PASS - 1) throw new Error(`the last COMMIT is of ${last}`)
  }
}

function responseEncode(): Pass {
  const writer = new XdrWriter(1 << 20)
  return () => {
    writer.clear()
    for (let seq = 0; seq < PER_PASS; seq++) writeResponse(writer, seq, 0, 0)
  }
}

/** Two-byte pairs, in slices as a feed is read. */
function smonDecode(): Pass {
  const sink: SmonSink & { values: number } = {
    values: 0,
    defined() {},
    number() {
      this.values++
    },
    text() {},
    reset() {},
    invalid(error) {
      throw error
    },
  }
  const limits = { maxTokens: SERIES, maxNameBytes: 100, maxStringBytes: 100, maxBytes: 100_000, maxIndexDepth: 1 }
  const decoder = new SmonDecoder(sink, limits)
  decoder.decode(definitions())
  const rounds = roundsOf(PER_PASS / SERIES)
  return () => {
    sink.values = 0
    for (let at = 0; at < rounds.length; at += SLICE_BYTES) decoder.decode(rounds.subarray(at, at + SLICE_BYTES))
    if (sink.values !== PER_PASS) throw new Error(`${sink.values} values were decoded`)
  }
}

/** The same stream, written. */
function smonEncode(): Pass {
  const encoder = new SmonEncoder()
  for (let token = 0; token < SERIES; token++) encoder.define(Buffer.from(`reading.${token}`), 0)
  encoder.take()
  let value = 0
  return () => {
    for (let round = 0; round < PER_PASS / SERIES; round++) {
      value++
      for (let token = 1; token <= SERIES; token++) encoder.value(token, value)
    }
    const { length } = encoder.take()
    if (length !== bytesOf(PER_PASS))
      throw new Error(`${length} bytes, where the shortest stream has ${bytesOf(PER_PASS)}`)
  }
}

/** A double as gmond sends it. */
function gmetricDecode(): Pass {
  const packet = join(u32(GMETRIC_DOUBLE), str('vm'), str('load_one'), u32(0), str('%.2f'), f64(1.5))
  return () => {
    for (let i = 0; i < PER_PASS; i++) decodePacket(packet)
  }
}

function gmetricEncode(): Pass {
  const host = { spoofed: false, label: 'vm' } as const
  return () => {
    for (let i = 0; i < PER_PASS; i++) encodeText(host, 'load_one', '1.50')
  }
}
