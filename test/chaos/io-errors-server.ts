/** The real server, whose next fsync fails while it serves: no more OK, an error for people, exit code 1, nothing lost. */
import { command } from '../support/bytes.ts'
import { Child } from '../support/child.ts'
import type { RawPeer } from '../support/raw-peer.ts'
import { ServerProcess } from '../support/server-process.ts'

/** Gives how many servers were made to end: one for each way an fsync fails, or the first `count` of them. */
export async function serverWithFailingSync(count = 3): Promise<number> {
  const faults = [
    'fsync,fdatasync:error=EIO:when=1',
    'fsync,fdatasync:error=EIO',
    'fsync,fdatasync:error=ENOSPC',
  ].slice(0, count)
  for (const fault of faults) await endOf(fault)
  return faults.length
}

async function endOf(fault: string): Promise<void> {
  const server = new ServerProcess('[gmetric]\nlisten = ""\n')
  try {
    await server.start()
    const { peer } = await server.login()
    peer.send(command.defChannel(1))
    const { status, result: channel } = await peer.response(1)
    if (status !== 0) throw new Error(`DEF_CHANNEL was answered with ${status}`)
    const tracer = await attached(server.pid, fault)
    // Its answer waits for an fsync, which fails.
    peer.send(command.defChannel(2))
    await closed(peer)
    const code = await server.end()
    await tracer.end('SIGKILL')
    const answer = peer.log.find((message) => message.kind === 'response' && message.seq === 2)
    if (answer !== undefined) throw new Error(`${fault}: a command was answered after an fsync had failed`)
    if (code !== 1) throw new Error(`${fault}: the server ended with ${code}: ${server.errors}`)
    if (!/storing failed.*start again/.test(server.errors)) {
      throw new Error(`${fault}: no clear error: ${server.errors}`)
    }

    await server.start()
    const { peer: again } = await server.login()
    again.send(command.setChannel(3, channel))
    const { status: found } = await again.response(3)
    if (found !== 0) throw new Error(`${fault}: a channel that was answered is gone (status ${found})`)
    again.destroy()
  } finally {
    await server.remove()
  }
}

async function closed(peer: RawPeer): Promise<void> {
  while ((await peer.next()).kind !== 'closed');
}

/** strace on all threads of a running process. */
async function attached(pid: number, fault: string): Promise<Child> {
  const args = ['-f', '-p', String(pid), '-e', 'trace=fsync,fdatasync', '-e', `inject=${fault}`]
  const tracer = new Child('strace', args)
  if (!(await tracer.hasPrinted('attached', 'errors'))) throw new Error(`strace: ${tracer.errors}`)
  return tracer
}
