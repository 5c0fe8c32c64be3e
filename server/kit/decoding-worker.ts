/** The thread that decodes long bodies, one at a time: `Decoding` starts it by the name `#decoding-worker`. */
import { parentPort } from 'node:worker_threads'
import { ProtocolError } from '../../protocol/errors.ts'
import { finish, type Steps } from '../kernel/core/fair-work.ts'
import { buffersOf, type Columns } from './columns.ts'
import type { DecodingAnswer, DecodingTask } from './decoding.ts'
import { inflated } from './inflate.ts'
import { MOST_BYTES_IN_THREAD, SeriesMemory } from './series-memory.ts'

type Decode = (bytes: Uint8Array, options: unknown, memory: SeriesMemory<never>) => Steps<Columns>

/** A decoder that was needed before, and what it remembers. */
interface Loaded {
  readonly decode: Decode
  readonly memory: SeriesMemory<never>
}

const loaded = new Map<string, Loaded>()

function keyOf({ module, name }: DecodingTask): string {
  return `${module} ${name}`
}

async function loadedOf(task: DecodingTask): Promise<Loaded> {
  const found = (await import(import.meta.resolve(task.module))) as Readonly<Record<string, Decode>>
  const memory = new SeriesMemory<never>({ mostBytes: MOST_BYTES_IN_THREAD })
  const made = { decode: found[task.name] as Decode, memory }
  loaded.set(keyOf(task), made)
  return made
}

async function decoded(task: DecodingTask): Promise<DecodingAnswer> {
  const { decode, memory } = loaded.get(keyOf(task)) ?? (await loadedOf(task))
  const { bytes, encoding, most, options } = task
  try {
    return { columns: finish(decode(inflated(bytes, encoding, most), options, memory)) }
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    const { code, message, offset } = error
    return { refused: { code, message, offset } }
  }
}

parentPort?.on('message', async (task: DecodingTask) => {
  const answer = await decoded(task)
  parentPort?.postMessage(answer, 'columns' in answer ? buffersOf(answer.columns) : [])
})
