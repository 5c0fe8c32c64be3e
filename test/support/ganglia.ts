/** Ganglia's own programs, each with a configuration of its own, on loopback and in a directory that goes away. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'

const GMETRIC = '/usr/bin/gmetric'
const GMOND = '/usr/sbin/gmond'
const GMETAD = '/usr/sbin/gmetad'
/** nobody: gmetad needs nothing that is root's. */
const NOBODY = 65_534

export const MODULES = (existsSync('/usr/lib') ? readdirSync('/usr/lib') : [])
  .map((folder) => join('/usr/lib', folder, 'ganglia'))
  .find((folder) => existsSync(join(folder, 'modcpu.so')))

export const missing = [
  ...(existsSync(GMETRIC) && existsSync(GMOND) && MODULES !== undefined ? [] : ['ganglia-monitor']),
  ...(existsSync(GMETAD) ? [] : ['gmetad']),
]

export class Ganglia {
  readonly directory = mkdtempSync(join(tmpdir(), 'cinnabar-ganglia-'))
  readonly #children: ChildProcess[] = []
  #files = 0

  /** Sends one metric by the real gmetric, by a `udp_send_channel` like `host = 127.0.0.1 port = 1`. */
  gmetric(channel: string, ...options: readonly string[]): void {
    const file = this.#file(
      `globals { daemonize = no setuid = no } cluster { name = "test" } udp_send_channel { ${channel} }`,
    )
    const { status, stderr } = spawnSync(GMETRIC, ['-c', file, ...options])
    expect({ status, stderr: `${stderr}` }).toEqual({ status: 0, stderr: '' })
  }

  /** Starts a gmond: `sections` is its configuration but for the globals that keep it in the foreground. */
  gmond(globals: string, sections: string): void {
    const file = this.#file(`globals { daemonize = no setuid = no ${globals} } cluster { name = "test" } ${sections}`)
    this.#start(GMOND, ['-c', file, '-f'])
  }

  /** Starts a gmetad that polls every second, keeps a few values, and is asked at `port`. Gives the directory of its RRDs. */
  gmetad(source: string, port: number, interactive: number): string {
    const rrds = join(this.directory, 'rrds')
    const asNobody = process.getuid?.() === 0
    mkdirSync(rrds)
    chmodSync(this.directory, 0o755)
    // It wants its directory to be its own.
    if (asNobody) chownSync(rrds, NOBODY, NOBODY)
    const file = this.#file(
      `data_source "test" 1 ${source}
       RRAs "RRA:AVERAGE:0.5:1:100"
       setuid off
       rrd_rootdir "${rrds}"
       xml_port ${port}
       interactive_port ${interactive}
       `,
    )
    this.#start(GMETAD, ['-c', file, '-d', '1'], asNobody)
    return rrds
  }

  get alive(): boolean {
    return this.#children.every(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
  }

  async stop(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await new Promise((resolve) => child.once('close', resolve))
    }
    rmSync(this.directory, { recursive: true })
  }

  #start(program: string, options: readonly string[], asNobody = false): void {
    const user = asNobody ? { uid: NOBODY, gid: NOBODY } : {}
    this.#children.push(spawn(program, options, { stdio: 'ignore', ...user }))
  }

  #file(text: string): string {
    const file = join(this.directory, `${this.#files++}.conf`)
    writeFileSync(file, text)
    return file
  }
}

/** All that a TCP port tells whoever connects. */
export function reported(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}
