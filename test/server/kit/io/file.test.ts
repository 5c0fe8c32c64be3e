import { execFileSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { appendFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { followFile } from '../../../../server/kit/io/file.ts'
import { FeedTurns, Pacer } from '../../../../server/kit/io/pacer.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

let directory = ''
let path = ''
let closing: { close(): Promise<void> } | undefined
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-'))
  path = join(directory, 'stream')
})
afterEach(async () => {
  await closing?.close()
  rmSync(directory, { recursive: true })
})

function following({ follow = true } = {}) {
  const clock = new FakeClock()
  /** A text for each stream; `.` is its end. */
  const streams: string[] = []
  const failures: string[] = []
  const open = () => {
    const at = streams.push('') - 1
    return {
      push: (bytes: Uint8Array) => {
        streams[at] += Buffer.from(bytes).toString()
      },
      end: () => {
        streams[at] += '.'
      },
    }
  }
  const storage = {
    isBehind: false,
    stored: () => {},
    behind: () => storage.isBehind,
    whenStored(resume: () => void) {
      storage.stored = resume
    },
  }
  const failed = (error: unknown): void => void failures.push(String(error))
  const pacer = new Pacer({ storage, turns: new FeedTurns(clock), clock, failed })
  closing = followFile({ path, follow, clock, pacer, open, failed: ({ message }) => failures.push(message) })
  /** Lets time go on until there is as much as expected. */
  const until = async (is: () => boolean): Promise<void> => {
    while (!is()) {
      clock.advance(500)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { clock, streams, failures, storage, until }
}

describe('a file', () => {
  test('is read to its end, and then what is added to it', async () => {
    await writeFile(path, 'x'.repeat(200_000))
    const { streams, until } = following()
    await until(() => streams[0]?.length === 200_000)
    await appendFile(path, 'more')
    await until(() => streams[0]?.length === 200_004)
    expect(streams[0]?.endsWith('xmore')).toBe(true)
  })

  test('that is not followed is read once', async () => {
    await writeFile(path, 'all')
    const { streams, clock, until } = following({ follow: false })
    await until(() => streams[0] === 'all')
    expect(clock.timers).toBe(0)
  })

  test('that became shorter, or is another one, is another stream', async () => {
    await writeFile(path, 'first')
    const { streams, until } = following()
    await until(() => streams[0] === 'first')
    await writeFile(path, '2nd')
    await until(() => streams[1] === '2nd')
    await writeFile(`${path}.new`, 'third, longer')
    renameSync(`${path}.new`, path)
    await until(() => streams[2] === 'third, longer')
    expect(streams.slice(0, 2)).toEqual(['first.', '2nd.'])
  })

  test('that is moved away is read to its end before the one in its place', async () => {
    await writeFile(path, 'first')
    const { streams, until } = following()
    await until(() => streams[0] === 'first')
    await appendFile(path, ', and its last words')
    renameSync(path, `${path}.1`)
    await writeFile(path, 'second')
    await until(() => streams[1] === 'second')
    expect(streams[0]).toBe('first, and its last words.')
  })

  test('is not begun before the one in its place was taken to its end', async () => {
    await writeFile(path, 'first')
    const { streams, storage, until } = following()
    storage.isBehind = true
    await until(() => streams.length === 1)
    await writeFile(`${path}.new`, 'second')
    renameSync(`${path}.new`, path)
    let looks = 0
    await until(() => ++looks > 50)
    expect(streams).toEqual([''])
    storage.isBehind = false
    storage.stored()
    await until(() => streams[1] === 'second')
    expect(streams[0]).toBe('first.')
  })

  test('is read on as soon as there is room, and not when it is looked at next', async () => {
    await writeFile(path, 'x'.repeat(300_000))
    const { streams } = following()
    while (streams[0]?.length !== 300_000) await new Promise((resolve) => setImmediate(resolve))
  })

  test('that is a pipe is told of, and nobody waits for who writes into it', async () => {
    execFileSync('mkfifo', [path])
    const { failures, until } = following()
    await until(() => failures.length > 0)
    expect(failures).toEqual(['not a regular file'])
  })

  test('that is missing is told of once, and read when it is there', async () => {
    const { streams, failures, until } = following()
    await until(() => failures.length > 0)
    await writeFile(path, 'here')
    await until(() => streams[0] === 'here')
    expect(failures).toEqual([expect.stringContaining('ENOENT')])
  })
})
