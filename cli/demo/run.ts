/** Sets the stage of the demonstration and clears it away, however it ends. */
import { ExitCode, Failure } from '../failure.ts'
import { resolveLogin } from '../login.ts'
import type { Cli } from '../session.ts'
import { Play } from './play.ts'
import { DemoServer } from './server.ts'
import { Story } from './story.ts'

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
  } finally {
    undo()
    ending.abort()
    await server.remove()
    await play.close()
  }
}
