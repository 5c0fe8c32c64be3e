/**
 * How nodes of a cluster prove to each other who they are: each has a certificate of the cluster's authority, and shows it when
 * it connects and when it is connected to. The files are read again when they change, as those of `[tls]` are.
 */
import { isIP, type Socket, type TcpNetConnectOpts } from 'node:net'
import { checkServerIdentity, connect, type PeerCertificate, type TLSSocket, type TlsOptions } from 'node:tls'
import { isLoopback, unmapped } from '../../auth/network.ts'
import { Handshakes } from '../edge/tls/files.ts'
import { type Material, optionsOf, readMaterial } from '../edge/tls/material.ts'
import type { Address } from '../kernel/core/address.ts'
import { type FileChange, readAgain, WatchedFile } from '../kernel/core/watched-file.ts'

/** Paths of PEM files. */
export interface NodeCertificateFiles {
  /** The authority that has issued the certificates of all nodes, and should issue no others. */
  readonly ca: string
  /** The certificate of this node, for its name or its host in `cluster.nodes`, for use as server and client. */
  readonly cert: string
  readonly key: string
}

export class NodeCertificates {
  readonly #files: { readonly cert: WatchedFile; readonly key: WatchedFile; readonly clientCa: WatchedFile }
  #material: Material
  #handshakes: Handshakes

  /** Throws FileError if a file cannot be used. */
  constructor({ ca, cert, key }: NodeCertificateFiles) {
    this.#files = {
      cert: new WatchedFile(cert, 'cluster.tls_cert'),
      key: new WatchedFile(key, 'cluster.tls_key'),
      clientCa: new WatchedFile(ca, 'cluster.tls_ca'),
    }
    this.#material = readMaterial(this.#files)
    this.#handshakes = new Handshakes(this.#options)
  }

  get #options(): TlsOptions {
    return { ...optionsOf(this.#material), rejectUnauthorized: true }
  }

  /** Reads the files again if one has changed; must be called every second. Connections that are open stay as they are. */
  reloadIfChanged(): FileChange | undefined {
    return readAgain(Object.values(this.#files), () => {
      this.#material = readMaterial(this.#files)
      this.#handshakes = new Handshakes(this.#options)
    })
  }

  /** A handshake as the server. Calls `done` when the other end has shown a certificate of the authority; else destroys `raw`. */
  accept(raw: Socket, done: (socket: TLSSocket) => void): void {
    this.#handshakes.begin(raw, done)
  }

  /**
   * Connects to a node, which answers `secureConnect` on the socket. The handshake fails unless the other end has a certificate of
   * the authority for one of `names`.
   */
  connect(to: TcpNetConnectOpts, names: readonly string[]): TLSSocket {
    const { ca, cert, key, ciphers, minVersion, secureOptions } = this.#options
    return connect({
      ...to,
      ca,
      cert,
      key,
      ciphers,
      minVersion,
      secureOptions,
      // The name of a node need not be a name of its host.
      checkServerIdentity: (_host, certificate) =>
        isFor(certificate, names)
          ? undefined
          : new Error(
              `its certificate is for ${certificate.subjectaltname ?? 'nobody'}, and not for ${names.join(' or ')}`,
            ),
    })
  }
}

/** Whether the other end has shown a certificate for one of these nodes, or hosts. */
export function isCertifiedFor(socket: TLSSocket, names: readonly string[]): boolean {
  return isFor(socket.getPeerCertificate(), names)
}

function isFor(certificate: PeerCertificate, names: readonly string[]): boolean {
  return names.some((name) => checkServerIdentity(name, certificate) === undefined)
}

/**
 * Whether the other end of a connection may be a node, by its address: if `cluster.nodes` has a host name it may be anywhere, and its
 * certificate alone has to prove who it is.
 */
export function mayComeFrom({ host }: Address, { remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): boolean {
  return isIP(host) === 0 || unmapped(host) === unmapped(remoteAddress)
}

/** Whether only programs on this machine reach a host, so that its nodes may do without certificates. */
export function isOfThisMachine(host: string): boolean {
  return host === 'localhost' || isLoopback(host)
}
