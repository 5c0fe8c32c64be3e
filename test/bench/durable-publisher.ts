/** The publisher of `durable`: one TCP connection, one smon stream, as fast as the server reads it. */
import { bytesOf, definitions, roundsOf, SERIES } from './durable-stream.ts'
import type { End, Job, Outcome } from './processes/end.ts'
import { RawSocket } from './processes/raw-socket.ts'

const ROUNDS_PER_WRITE = 320
const VALUES_PER_WRITE = ROUNDS_PER_WRITE * SERIES

export async function openSmonPublisher(job: Job): Promise<End> {
  if (job.values < SERIES) throw new Error(`${job.values} values, where ${SERIES} series have one each to begin with`)
  const socket = await new RawSocket(job.port, (_bytes, _view, end) => end).connected()
  return { run: () => publish(socket, job.values), close: () => socket.close() }
}

async function publish(socket: RawSocket, values: number): Promise<Outcome> {
  const write = async (bytes: Uint8Array): Promise<void> => {
    if (!socket.write(bytes)) await socket.drained()
  }
  await write(definitions())
  const rounds = roundsOf(ROUNDS_PER_WRITE)
  let left = values - SERIES
  for (; left >= VALUES_PER_WRITE; left -= VALUES_PER_WRITE) await write(rounds)
  await write(rounds.subarray(0, bytesOf(left)))
  return { dropped: 0 }
}
