/** The thread that decodes long bodies, one at a time: `Decoding` starts it by the name `#decoding-worker`. */
import { parentPort } from 'node:worker_threads'
import { ProtocolError } from '../../protocol/errors.ts'
import { finish, type Steps } from '../kernel/core/fair-work.ts'
import { buffersOf, type Columns } from './columns.ts'
import type { DecodingAnswer, DecodingTask } from './decoding.ts'
import { inflated } from './inflate.ts'
import { SeriesMemory } from './series-memory.ts'

type Decode = (bytes: Uint8Array, options: unknown, memory: SeriesMemory<never>) => Steps<Columns>

async function decoded(
  { module, name, bytes, encoding, most, options }: DecodingTask,
  memories: Map<string, SeriesMemory<never>>,
): Promise<DecodingAnswer> {
  const found = (await import(import.meta.resolve(module))) as Readonly<Record<string, Decode>>
  const memory = memories.get(module) ?? new SeriesMemory<never>()
  memories.set(module, memory)
  try {
    return { columns: finish((found[name] as Decode)(inflated(bytes, encoding, most), options, memory)) }
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    const { code, message, offset } = error
    return { refused: { code, message, offset } }
  }
}

const memories = new Map<string, SeriesMemory<never>>()
parentPort?.on('message', async (task: DecodingTask) => {
  const answer = await decoded(task, memories)
  parentPort?.postMessage(answer, 'columns' in answer ? buffersOf(answer.columns) : [])
})
