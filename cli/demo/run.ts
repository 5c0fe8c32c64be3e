/** Sets the stage of the demonstration and clears it away, however it ends. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ExitCode, Failure } from '../failure.ts'
import { resolveLogin } from '../login.ts'
import type { Cli } from '../session.ts'
import { Play } from './play.ts'
import { DemoServer } from './server.ts'
import { Story } from './story.ts'

/** How long the end of a server is waited for after a connection to it was lost. */
const SERVER_END_MS = 5_000

/** Rejects with Failure unless everything balanced. */
export async function runDemo({ terminal, connect }: Cli, seconds: number): Promise<void> {
  const ending = new AbortController()
  const { signal } = ending
  const interrupted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
  const undo = terminal.onInterrupt(() =>
    ending.abort(new Failure(ExitCode.FAILED, 'ended before its time: nothing is proven')),
  )
  const server = await DemoServer.create()
  const story = new Story(terminal)
  // Only what stands in the server's own configuration and directory, whatever the environment says.
  const login = () => resolveLogin({ config: server.config }, { ...terminal, env: {} })
  const play = new Play({ server, login, connect, story, seconds, signal, failed: (error) => ending.abort(error) })
  try {
    await Promise.race([play.run(), server.failed, interrupted])
  } catch (error) {
    // A server that dies ends its connections first, and then its end is reported: that is the cause to be shown.
    if (!(error instanceof Failure))
      await Promise.race([server.failed, sleep(SERVER_END_MS, undefined, { ref: false })])
    throw error
  } finally {
    undo()
    ending.abort()
    await server.remove()
    await play.close()
  }
}
