// What the page's modules rely on beside the standard library's types.

// Our own events carry a `detail`, and every class of ours that has events is an EventTarget.
interface EventTarget {
    addEventListener(
        type: string,
        listener: (event: CustomEvent) => void,
        options?: AddEventListenerOptions | boolean,
    ): void;
}

// Not in all browsers (Network Information API).
interface Navigator {
    connection?: EventTarget;
}

interface WebTransport {
    /** The protocol that the server chose; empty for none. */
    readonly protocol?: string;
    getStats?(): Promise<{ smoothedRtt?: number }>;
}

interface WebTransportOptions {
    protocols?: string[];
}

// What the admin theme's scripts define for all.
declare const Alpine: any;
declare const htmx: any;
declare function getCurrentTab(): string | null;
declare function theme(): object;
declare function searchForm(): object;
declare function searchDropdown(): object;
declare function searchCommand(): object;
